// Generates a package's SDK from its schema, as `pulumi package add` and `package gen-sdk` need it.
//
// Usage: pulumi-codegen LANGUAGE DIRECTORY LOADER < SCHEMA
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"

	golang "github.com/pulumi/pulumi/pkg/v3/codegen/go"
	"github.com/pulumi/pulumi/pkg/v3/codegen/nodejs"
	"github.com/pulumi/pulumi/pkg/v3/codegen/python"
	"github.com/pulumi/pulumi/pkg/v3/codegen/schema"
)

const tool = "pulumi-codegen"

func main() {
	if len(os.Args) != 4 {
		fail(fmt.Errorf("usage: %s python|nodejs|go DIRECTORY LOADER < SCHEMA", tool))
	}
	files, err := generate(os.Args[1], os.Args[3], os.Stdin)
	if err != nil {
		fail(err)
	}
	for name, content := range files {
		path := filepath.Join(os.Args[2], filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			fail(err)
		}
		if err := os.WriteFile(path, content, 0o600); err != nil {
			fail(err)
		}
	}
}

// generate returns the content of each file of the SDK by its path; loader is the address of the
// engine's server of schemas.
func generate(language, loader string, input io.Reader) (map[string][]byte, error) {
	var spec schema.PackageSpec
	if err := json.NewDecoder(input).Decode(&spec); err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	schemas, err := schema.NewLoaderClient(loader)
	if err != nil {
		return nil, err
	}
	cached := schema.NewCachedLoader(schemas)
	pkg, problems, err := schema.BindSpec(spec, cached, schema.ValidationOptions{AllowDanglingReferences: true})
	if err != nil {
		return nil, err
	}
	if problems.HasErrors() {
		return nil, problems
	}
	switch language {
	case "python":
		return python.GeneratePackage(tool, pkg, nil, cached)
	case "nodejs":
		return nodejs.GeneratePackage(tool, pkg, nil, nil, true, cached)
	case "go":
		return golang.GeneratePackage(tool, pkg, nil)
	}
	return nil, fmt.Errorf("language %q; allowed: python, nodejs, go", language)
}

func fail(err error) {
	fmt.Fprintf(os.Stderr, "%s: %v\n", tool, err)
	os.Exit(1)
}
