// Copyright 2026 The llm_gateway Authors
//
// Licensed under the Apache License, Version 2.0 (the "License");
// you may not use this file except in compliance with the License.
// You may obtain a copy of the License at
//
//     http://www.apache.org/licenses/LICENSE-2.0
//
// Unless required by applicable law or agreed to in writing, software
// distributed under the License is distributed on an "AS IS" BASIS,
// WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
// See the License for the specific language governing permissions and
// limitations under the License.

package llmgateway_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/llm-gateway/caddy-llm-gateway/internal/testrig"
)

func TestExamplesAreFormattedAndValid(t *testing.T) {
	files, err := filepath.Glob("examples/*/Caddyfile")
	if err != nil || len(files) < 2 {
		t.Fatalf("%d examples, %v", len(files), err)
	}
	for _, file := range files {
		t.Run(file, func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(caddyfile.Format(text), text) {
				t.Error("not formatted")
			}
			validate(t, string(text))
			if _, err := os.Stat(filepath.Join(filepath.Dir(file), "README.md")); err != nil {
				t.Error(err)
			}
		})
	}
}

func validate(t *testing.T, text string) []byte {
	t.Helper()
	config, err := testrig.Adapt(text)
	if err != nil {
		t.Fatal(err)
	}
	var parsed caddy.Config
	if err := json.Unmarshal(config, &parsed); err != nil {
		t.Fatal(err)
	}
	if err := caddy.Validate(&parsed); err != nil {
		t.Error(err)
	}
	return config
}

// fenced returns the README's code blocks of that language.
func fenced(t *testing.T, language string) []string {
	t.Helper()
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	var blocks []string
	for i, part := range strings.Split(string(text), "```") {
		if i%2 == 1 && strings.HasPrefix(part, language+"\n") {
			blocks = append(blocks, strings.TrimPrefix(part, language+"\n"))
		}
	}
	return blocks
}

func TestJSONInTheREADMEIsTheQuickstarts(t *testing.T) {
	text, err := os.ReadFile("examples/quickstart/Caddyfile")
	if err != nil {
		t.Fatal(err)
	}
	var adapted any
	if err := json.Unmarshal(validate(t, string(text)), &adapted); err != nil {
		t.Fatal(err)
	}
	twin := fenced(t, "json")
	if len(twin) != 1 {
		t.Fatalf("%d JSON blocks", len(twin))
	}
	var want any
	if err := json.Unmarshal([]byte(twin[0]), &want); err != nil {
		t.Fatal(err)
	}
	if got := findHandler(adapted); !reflect.DeepEqual(got, want) {
		t.Errorf("adapted: %v\nREADME: %v", got, want)
	}
}

// findHandler returns the first llm_gateway handler in a config.
func findHandler(v any) any {
	switch v := v.(type) {
	case map[string]any:
		if v["handler"] == "llm_gateway" {
			return v
		}
		for _, child := range v {
			if h := findHandler(child); h != nil {
				return h
			}
		}
	case []any:
		for _, child := range v {
			if h := findHandler(child); h != nil {
				return h
			}
		}
	}
	return nil
}

func TestCaddyfilesInTheREADMEAreValid(t *testing.T) {
	sites := 0
	for _, block := range fenced(t, "") {
		switch {
		case strings.HasPrefix(block, "http://"):
			validate(t, block)
			sites++
		case strings.HasPrefix(block, "log {"):
			validate(t, "http://localhost:1 {\n"+block+"\n}")
			sites++
		}
	}
	if sites != 2 {
		t.Errorf("%d Caddyfiles found", sites)
	}
}
