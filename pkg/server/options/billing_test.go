package options

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCostCenters_areTheLinesOfTheFile(t *testing.T) {
	t.Parallel()
	o := New()
	o.Billing.CostCentersFile, o.Billing.DefaultCostCenter = filepath.Join(t.TempDir(), "centers"), "12"
	require.NoError(t, os.WriteFile(o.Billing.CostCentersFile, []byte("\ufeff4711\r\n\n 12 \nR&D, Zürich"), 0o600))
	c, err := o.Complete()
	require.NoError(t, err)
	listed, err := c.Billing.ReadCostCenters()
	require.NoError(t, err)
	require.Equal(t, map[string]bool{"4711": true, "12": true, "R&D, Zürich": true}, listed)
	listed, err = new(BillingOptions).ReadCostCenters()
	require.NoError(t, err)
	require.Nil(t, listed, "without a file every value can be set")
}

func TestCostCenters_ofABadFileEndTheStart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, test := range map[string]struct {
		content, initial, want string
	}{
		"empty":               {"\n \n", "", "has no cost center"},
		"too long":            {"1\n" + strings.Repeat("ä", 129), "", "line 2 has more than 128 characters"},
		"not text":            {"1\n\xff", "", "is not UTF-8"},
		"without the default": {"1\n2", "3", `does not have "3", which is --default-cost-center`},
	} {
		o := New()
		o.Billing.CostCentersFile, o.Billing.DefaultCostCenter = filepath.Join(dir, name), test.initial
		require.NoError(t, os.WriteFile(o.Billing.CostCentersFile, []byte(test.content), 0o600))
		_, err := o.Complete()
		require.ErrorContains(t, err, "--cost-centers-file: ", name)
		require.ErrorContains(t, err, test.want, name)
	}
}
