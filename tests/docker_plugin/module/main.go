// The executable is Pulumi's plugin for Docker: the upstream Terraform provider that the official
// plugin has, through the same bridge, with the names of the package pulumi-docker.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"unicode"

	"github.com/pulumi/pulumi-terraform-bridge/v3/pkg/tfbridge"
	"github.com/pulumi/pulumi-terraform-bridge/v3/pkg/tfgen"
	shimv2 "github.com/pulumi/pulumi-terraform-bridge/v3/pkg/tfshim/sdk-v2"
	"github.com/pulumi/pulumi/sdk/v3/go/common/diag"
	"github.com/pulumi/pulumi/sdk/v3/go/common/diag/colors"
	"github.com/pulumi/pulumi/sdk/v3/go/common/tokens"
	"github.com/terraform-providers/terraform-provider-docker/exported"
)

// version is that of the package pulumi-docker; the build sets it.
var version string

// resources maps upstream's resources to Pulumi's names.
var resources = map[string]string{
	"docker_buildx_builder": "BuildxBuilder",
	"docker_config":         "ServiceConfig",
	"docker_container":      "Container",
	"docker_image":          "RemoteImage",
	"docker_network":        "Network",
	"docker_plugin":         "Plugin",
	"docker_registry_image": "RegistryImage",
	"docker_secret":         "Secret",
	"docker_service":        "Service",
	"docker_tag":            "Tag",
	"docker_volume":         "Volume",
}

// named lists the resources that get a random name where a program gives none.
var named = []string{"docker_container", "docker_network", "docker_service", "docker_volume"}

func token(name string) string {
	runes := []rune(name)
	runes[0] = unicode.ToLower(runes[0])
	return "docker:index/" + string(runes) + ":" + name
}

func provider() tfbridge.ProviderInfo {
	upstream := exported.NewProvider(version)
	info := tfbridge.ProviderInfo{
		P:            shimv2.NewProvider(upstream),
		Name:         "docker",
		Version:      version,
		MetadataInfo: tfbridge.NewProviderMetadata([]byte("{}")),
		Config:       map[string]*tfbridge.SchemaInfo{"registry_auth": {Name: "registryAuth"}},
		Resources:    map[string]*tfbridge.ResourceInfo{},
		DataSources:  map[string]*tfbridge.DataSourceInfo{},
	}
	for name, pulumiName := range resources {
		info.Resources[name] = &tfbridge.ResourceInfo{
			Tok:    tokens.Type(token(pulumiName)),
			Fields: map[string]*tfbridge.SchemaInfo{},
		}
	}
	for _, name := range named {
		info.Resources[name].Fields["name"] = tfbridge.AutoName("name", 255, "-")
	}
	container := info.Resources["docker_container"].Fields
	container["command"] = &tfbridge.SchemaInfo{Name: "command"}
	container["networks_advanced"] = &tfbridge.SchemaInfo{Name: "networksAdvanced"}
	for name := range upstream.DataSourcesMap {
		pulumiName := "get"
		for _, word := range strings.Split(strings.TrimPrefix(name, "docker_"), "_") {
			pulumiName += strings.ToUpper(word[:1]) + word[1:]
		}
		info.DataSources[name] = &tfbridge.DataSourceInfo{
			Tok: tokens.ModuleMember(token(pulumiName)),
		}
	}
	return info
}

func schema(info tfbridge.ProviderInfo) ([]byte, error) {
	messages := diag.DefaultSink(os.Stderr, os.Stderr, diag.FormatOptions{Color: colors.Never})
	description, err := tfgen.GenerateSchema(info, messages)
	if err != nil {
		return nil, err
	}
	return json.Marshal(description)
}

func main() {
	info := provider()
	text, err := schema(info)
	if err != nil {
		fmt.Fprintln(os.Stderr, "schema:", err)
		os.Exit(1)
	}
	tfbridge.Main("docker", version, info, text)
}
