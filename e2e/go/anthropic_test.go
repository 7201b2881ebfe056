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

package e2e

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"
)

// The official Anthropic client.
func TestAnthropic(t *testing.T) {
	testMatrix(t, &client{
		name: "anthropic (Go)",
		wire: "anthropic",
		calls: map[string]call{
			"chat":         anthropicChat,
			"chat stream":  anthropicChatStream,
			"tools":        anthropicTools,
			"tools stream": anthropicToolsStream,
			"image input":  anthropicImageInput,
			"token count":  anthropicTokenCount,
			"models":       anthropicModels,
		},
		read: func(err error) (reply, bool) {
			e, ok := errors.AsType[*anthropic.Error](err)
			if !ok {
				return reply{}, false
			}
			var body struct{ Error struct{ Type string } }
			if err := json.Unmarshal([]byte(e.RawJSON()), &body); err != nil {
				return reply{}, false
			}
			return reply{kind: "*anthropic.Error", status: e.StatusCode, code: body.Error.Type, header: e.Response.Header}, true
		},
		codes: map[int]string{400: "invalid_request_error", 404: "not_found_error", 413: "request_too_large", 503: "overloaded_error"},
	})
}

// toolCall is a call that a model wants to be made.
type toolCall struct {
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
}

func anthropicClient(a ask) anthropic.Client {
	opts := []option.RequestOption{option.WithBaseURL(a.url), option.WithAPIKey(clientKey), option.WithHTTPClient(a.http)}
	if !a.retry {
		opts = append(opts, option.WithMaxRetries(0))
	}
	for name, value := range a.headers {
		opts = append(opts, option.WithHeader(name, value))
	}
	return anthropic.NewClient(opts...)
}

func anthropicParams(a ask, more ...anthropic.ContentBlockParamUnion) anthropic.MessageNewParams {
	blocks := append(more, anthropic.NewTextBlock(a.text))
	return anthropic.MessageNewParams{
		Model:     anthropic.Model(a.model),
		MaxTokens: 100,
		Messages:  []anthropic.MessageParam{anthropic.NewUserMessage(blocks...)},
	}
}

func anthropicToolParams(a ask) anthropic.MessageNewParams {
	p := anthropicParams(a)
	schema := anthropic.ToolInputSchemaParam{Properties: map[string]any{"city": map[string]any{"type": "string"}}}
	p.Tools = []anthropic.ToolUnionParam{anthropic.ToolUnionParamOfTool(schema, "weather")}
	return p
}

// anthropicAsk makes a message and returns its first block.
func anthropicAsk(t *testing.T, a ask, p anthropic.MessageNewParams) (anthropic.ContentBlockUnion, error) {
	c := anthropicClient(a)
	m, err := c.Messages.New(t.Context(), p)
	if err != nil {
		return anthropic.ContentBlockUnion{}, err
	}
	return m.Content[0], nil
}

// anthropicStream reads a message that is streamed, and returns its first block.
func anthropicStream(t *testing.T, a ask, p anthropic.MessageNewParams) (anthropic.ContentBlockUnion, error) {
	c := anthropicClient(a)
	stream := c.Messages.NewStreaming(t.Context(), p)
	defer stream.Close()
	var m anthropic.Message
	for stream.Next() {
		event := stream.Current()
		if err := m.Accumulate(event); err != nil {
			t.Errorf("an event that does not fit: %v", err)
		}
		if event.Type == "content_block_delta" {
			a.received()
		}
	}
	if err := stream.Err(); err != nil {
		return anthropic.ContentBlockUnion{}, err
	}
	return m.Content[0], nil
}

func anthropicText(block anthropic.ContentBlockUnion, err error) (any, error) {
	return block.Text, err
}

func anthropicToolCall(block anthropic.ContentBlockUnion, err error) (any, error) {
	return toolCall{block.Name, block.Input}, err
}

func anthropicChat(t *testing.T, a ask) (any, error) {
	return anthropicText(anthropicAsk(t, a, anthropicParams(a)))
}

func anthropicChatStream(t *testing.T, a ask) (any, error) {
	return anthropicText(anthropicStream(t, a, anthropicParams(a)))
}

func anthropicTools(t *testing.T, a ask) (any, error) {
	return anthropicToolCall(anthropicAsk(t, a, anthropicToolParams(a)))
}

func anthropicToolsStream(t *testing.T, a ask) (any, error) {
	return anthropicToolCall(anthropicStream(t, a, anthropicToolParams(a)))
}

func anthropicImageInput(t *testing.T, a ask) (any, error) {
	return anthropicText(anthropicAsk(t, a, anthropicParams(a, anthropic.NewImageBlockBase64("image/png", image))))
}

func anthropicTokenCount(t *testing.T, a ask) (any, error) {
	c := anthropicClient(a)
	p := anthropicParams(a)
	count, err := c.Messages.CountTokens(t.Context(), anthropic.MessageCountTokensParams{Model: p.Model, Messages: p.Messages})
	if err != nil {
		return nil, err
	}
	return count.InputTokens, nil
}

func anthropicModels(t *testing.T, a ask) (any, error) {
	c := anthropicClient(a)
	var ids []string
	pages := c.Models.ListAutoPaging(t.Context(), anthropic.ModelListParams{})
	for pages.Next() {
		ids = append(ids, pages.Current().ID)
	}
	return ids, pages.Err()
}
