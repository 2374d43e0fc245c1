// Package exported gives other modules the constructor of the provider, which is internal.
package exported

import (
	"github.com/hashicorp/terraform-plugin-sdk/v2/helper/schema"
	"github.com/terraform-providers/terraform-provider-docker/internal/provider"
)

// NewProvider returns the provider.
func NewProvider(version string) *schema.Provider { return provider.New(version)() }
