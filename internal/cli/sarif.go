package cli

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"

	"tidegate.dev/tidegate/docs"
	"tidegate.dev/tidegate/internal/lang/diag"
	"tidegate.dev/tidegate/rules/lint"
)

// The parts of SARIF 2.1.0 that code scanning reads.
type (
	sarifLog struct {
		Schema  string     `json:"$schema"`
		Version string     `json:"version"`
		Runs    []sarifRun `json:"runs"`
	}
	sarifRun struct {
		Tool       sarifTool     `json:"tool"`
		ColumnKind string        `json:"columnKind"`
		Results    []sarifResult `json:"results"`
	}
	sarifTool struct {
		Driver sarifDriver `json:"driver"`
	}
	sarifDriver struct {
		Name            string      `json:"name"`
		InformationURI  string      `json:"informationUri"`
		SemanticVersion string      `json:"semanticVersion"`
		Rules           []sarifRule `json:"rules"`
	}
	sarifRule struct {
		ID               string     `json:"id"`
		ShortDescription sarifText  `json:"shortDescription"`
		HelpURI          string     `json:"helpUri"`
		Help             *sarifText `json:"help,omitempty"`
	}
	sarifText struct {
		Text     string `json:"text"`
		Markdown string `json:"markdown,omitempty"`
	}
	sarifResult struct {
		RuleID       string             `json:"ruleId"`
		RuleIndex    int                `json:"ruleIndex"`
		Level        string             `json:"level"`
		Message      sarifText          `json:"message"`
		Locations    []sarifLocation    `json:"locations"`
		Fingerprints map[string]string  `json:"partialFingerprints"`
		Suppressions []sarifSuppression `json:"suppressions"` // [] says that there are none
	}
	sarifLocation struct {
		Physical sarifPhysical `json:"physicalLocation"`
	}
	sarifPhysical struct {
		Artifact sarifArtifact `json:"artifactLocation"`
		Region   *sarifRegion  `json:"region,omitempty"`
	}
	sarifArtifact struct {
		URI string `json:"uri"`
	}
	sarifRegion struct {
		StartLine   int        `json:"startLine"`
		StartColumn int        `json:"startColumn,omitempty"`
		EndColumn   int        `json:"endColumn,omitempty"`
		Snippet     *sarifText `json:"snippet,omitempty"`
	}
	sarifSuppression struct {
		Kind          string `json:"kind"`
		Status        string `json:"status"`
		Justification string `json:"justification"`
	}
)

const (
	home = "https://tidegate.dev"
	// unread is the SARIF rule for what keeps a file from loading, or has no effect in it.
	unread = "rule-file"
)

// sarif makes a SARIF log of what lint found.
func sarif(found diag.List) sarifLog {
	driver := sarifDriver{Name: "tidegate", InformationURI: home, SemanticVersion: strings.TrimPrefix(release, "v")}
	driver.Rules = append(driver.Rules, sarifRule{
		ID: unread, ShortDescription: sarifText{Text: "the rule file does not load, or a part of it has no effect"}, HelpURI: home + "/docs/rules.md",
	})
	index := map[string]int{"": 0}
	for _, c := range lint.Checks {
		index[c.Name] = len(driver.Rules)
		driver.Rules = append(driver.Rules, sarifRule{ID: c.Name, ShortDescription: sarifText{Text: c.Summary}, HelpURI: home + "/" + c.Docs})
	}
	results := []sarifResult{}
	seen := make(map[string]int)
	for _, p := range found {
		rule := &driver.Rules[index[p.Check]]
		if page, err := docs.Lint.ReadFile("lint/" + p.Check + ".md"); err == nil {
			rule.Help = &sarifText{Text: string(page), Markdown: string(page)}
		}
		r := sarifResult{
			RuleID: rule.ID, RuleIndex: index[p.Check], Level: p.Severity.String(), Message: sarifText{Text: sarifMessage(p)},
			Locations:    []sarifLocation{{sarifPhysical{sarifArtifact{sarifURI(p.File)}, sarifPlace(p)}}},
			Suppressions: []sarifSuppression{},
		}
		if p.Waived != "" {
			r.Suppressions = append(r.Suppressions, sarifSuppression{"inSource", "accepted", p.Waived})
		}
		r.Fingerprints = fingerprint(p, seen)
		results = append(results, r)
	}
	return sarifLog{
		Schema: "https://json.schemastore.org/sarif-2.1.0.json", Version: "2.1.0",
		Runs: []sarifRun{{sarifTool{driver}, "unicodeCodePoints", results}},
	}
}

func sarifMessage(p diag.Problem) string {
	if p.Hint == "" {
		return p.Message + "."
	}
	return p.Message + ".\n" + p.Hint
}

// sarifPlace returns the region that the caret underlines; nil for a whole file.
func sarifPlace(p diag.Problem) *sarifRegion {
	if p.Line == 0 {
		return nil
	}
	r := &sarifRegion{StartLine: p.Line, StartColumn: p.Col}
	if p.Col > 0 {
		r.EndColumn = p.Col + max(p.Len, 1)
	}
	if p.Source != "" && len(p.Source) <= maxSnippet {
		r.Snippet = &sarifText{Text: p.Source}
	}
	return r
}

// maxSnippet is the longest line that is shown: one may be as long as its file.
const maxSnippet = 4096

// sarifURI returns the name of a file as a URI, relative if the name is.
func sarifURI(name string) string {
	u := url.URL{Path: filepath.ToSlash(name)}
	if filepath.IsAbs(name) {
		u.Scheme = "file"
	}
	return u.String()
}

// fingerprint names a problem by what is found in which line, not by where the line is,
// so that code scanning knows it again when lines are added above it.
func fingerprint(p diag.Problem, seen map[string]int) map[string]string {
	text := strings.Join([]string{p.Check, filepath.ToSlash(p.File), strings.Join(strings.Fields(p.Source), " "), p.Message}, "\x00")
	seen[text]++
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%d", text, seen[text]))
	return map[string]string{"tidegate/v1": hex.EncodeToString(sum[:16])}
}
