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

func TestAnthropic(t *testing.T) {
	runMatrix(t, client{
		name: "anthropic (Go)", api: "anthropic", calls: anthropicCalls(),
		raised: func(err error) raised {
			var e *anthropic.Error
			if !errors.As(err, &e) {
				return raised{}
			}
			return raised{e.StatusCode, e.Response.Header, string(e.Type()) + ": " + e.RawJSON()}
		},
		code: map[int]string{
			400: "invalid_request_error", 404: "not_found_error", 413: "request_too_large", 500: "api_error",
		},
	})
}

func anthropicCalls() []call {
	return []call{
		{name: "chat", answer: "chat", run: anthropicChat(textBlock)},
		{name: "chat, streamed", stream: "chat", sends: []string{`"stream":true`}, run: anthropicChatStream},
		{name: "tool call", answer: "tools", sends: []string{`"lookup"`}, run: anthropicTool},
		{name: "tool call, streamed", stream: "tools", sends: []string{`"lookup"`}, run: anthropicToolStream},
		{name: "image as input", answer: "chat", sends: []string{image}, run: anthropicChat(imageBlocks)},
		{name: "count tokens", answer: "count tokens", run: anthropicCount},
		{name: "model list", answer: "models", modelless: true, run: anthropicModels},
	}
}

func anthropicClient(s session) anthropic.Client {
	opts := []option.RequestOption{option.WithBaseURL(s.url), option.WithAPIKey(clientKey), option.WithHTTPClient(s.http)}
	if !s.retries {
		opts = append(opts, option.WithMaxRetries(0))
	}
	return anthropic.NewClient(opts...)
}

func textBlock(text string) []anthropic.ContentBlockParamUnion {
	return []anthropic.ContentBlockParamUnion{anthropic.NewTextBlock(text)}
}

func imageBlocks(text string) []anthropic.ContentBlockParamUnion {
	return append(textBlock(text), anthropic.NewImageBlockBase64("image/png", image))
}

func messageParams(a args, blocks []anthropic.ContentBlockParamUnion) anthropic.MessageNewParams {
	return anthropic.MessageNewParams{
		Model: anthropic.Model(a.model), MaxTokens: 9,
		Messages: []anthropic.MessageParam{anthropic.NewUserMessage(blocks...)},
	}
}

func messageToolParams(a args) anthropic.MessageNewParams {
	params := messageParams(a, textBlock(a.text))
	schema := anthropic.ToolInputSchemaParam{Properties: map[string]any{"by": map[string]any{"type": "string"}}}
	params.Tools = []anthropic.ToolUnionParam{anthropic.ToolUnionParamOfTool(schema, "lookup")}
	return params
}

func anthropicChat(blocks func(string) []anthropic.ContentBlockParamUnion) func(session, args) (string, error) {
	return func(s session, a args) (string, error) {
		client := anthropicClient(s)
		answer, err := client.Messages.New(s.t.Context(), messageParams(a, blocks(a.text)))
		if err != nil {
			return "", err
		}
		return by(s.t, answer.Content[0].Text), nil
	}
}

// readMessage returns the message that the events of a stream make.
func readMessage(s session, a args, params anthropic.MessageNewParams) (anthropic.Message, error) {
	client := anthropicClient(s)
	stream := client.Messages.NewStreaming(s.t.Context(), params)
	defer stream.Close()
	var message anthropic.Message
	for stream.Next() {
		event := stream.Current()
		if event.Type == "content_block_delta" {
			a.seen()
		}
		if err := message.Accumulate(event); err != nil {
			return message, err
		}
	}
	return message, stream.Err()
}

func anthropicChatStream(s session, a args) (string, error) {
	message, err := readMessage(s, a, messageParams(a, textBlock(a.text)))
	if err != nil {
		return "", err
	}
	return by(s.t, message.Content[0].Text), nil
}

func anthropicTool(s session, a args) (string, error) {
	client := anthropicClient(s)
	answer, err := client.Messages.New(s.t.Context(), messageToolParams(a))
	if err != nil {
		return "", err
	}
	return toolUse(s, answer.Content[0])
}

func anthropicToolStream(s session, a args) (string, error) {
	message, err := readMessage(s, a, messageToolParams(a))
	if err != nil {
		return "", err
	}
	return toolUse(s, message.Content[0])
}

// toolUse returns the name of the upstream from what a tool is called with.
func toolUse(s session, block anthropic.ContentBlockUnion) (string, error) {
	if block.Type != "tool_use" || block.Name != "lookup" {
		s.t.Errorf("the block is %s", block.RawJSON())
	}
	var input struct{ By string }
	err := json.Unmarshal(block.Input, &input)
	return input.By, err
}

func anthropicCount(s session, a args) (string, error) {
	client := anthropicClient(s)
	count, err := client.Messages.CountTokens(s.t.Context(), anthropic.MessageCountTokensParams{
		Model:    anthropic.Model(a.model),
		Messages: []anthropic.MessageParam{anthropic.NewUserMessage(textBlock(a.text)...)},
	})
	if err != nil {
		return "", err
	}
	return string(rune(count.InputTokens)), nil
}

func anthropicModels(s session, _ args) (string, error) {
	client := anthropicClient(s)
	page, err := client.Models.List(s.t.Context(), anthropic.ModelListParams{})
	if err != nil {
		return "", err
	}
	return by(s.t, page.Data[0].ID), nil
}
