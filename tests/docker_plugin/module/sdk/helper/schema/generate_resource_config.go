package schema

import (
	"context"
	"errors"

	"github.com/hashicorp/terraform-plugin-go/tfprotov5"
)

// GenerateResourceConfig is asked by Terraform alone, never by Pulumi's bridge.
func (s *GRPCProviderServer) GenerateResourceConfig(
	context.Context, *tfprotov5.GenerateResourceConfigRequest,
) (*tfprotov5.GenerateResourceConfigResponse, error) {
	return nil, errors.New("generating configuration is not supported")
}
