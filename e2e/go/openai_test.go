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
	"reflect"
	"strings"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/responses"
)

func TestOpenAI(t *testing.T) {
	runMatrix(t, client{
		name: "openai (Go)", api: "openai", path: "/v1", calls: openAICalls(),
		raised: func(err error) raised {
			var e *openai.Error
			if !errors.As(err, &e) {
				return raised{}
			}
			return raised{e.StatusCode, e.Response.Header, e.Code + ": " + e.Message}
		},
		code: map[int]string{
			404: "model_not_found", 413: "request_too_large", 503: "no_channel_available",
		},
	})
}

func openAICalls() []call {
	return []call{
		{name: "chat", answer: "chat", run: openAIChat(plainText)},
		{name: "chat, streamed", stream: "chat", sends: []string{`"stream":true`}, run: openAIChatStream},
		{name: "tool call", answer: "tools", sends: []string{`"lookup"`}, run: openAITool},
		{name: "tool call, streamed", stream: "tools", sends: []string{`"lookup"`}, run: openAIToolStream},
		{name: "image as input", answer: "chat", sends: []string{image}, run: openAIChat(withImage)},
		{name: "responses", answer: "responses", run: openAIResponses},
		{name: "responses, streamed", stream: "responses", run: openAIResponsesStream},
		{name: "embeddings", answer: "embeddings", run: openAIEmbeddings},
		{name: "image generation", answer: "image generation", run: openAIImage},
		{name: "audio upload", answer: "transcription", sends: []string{"bytes of speech"}, run: openAIAudio},
		{name: "model list", answer: "models", modelless: true, run: openAIModels},
	}
}

func openAIClient(s session) openai.Client {
	opts := []option.RequestOption{option.WithBaseURL(s.url), option.WithAPIKey(clientKey), option.WithHTTPClient(s.http)}
	if !s.retries {
		opts = append(opts, option.WithMaxRetries(0))
	}
	return openai.NewClient(opts...)
}

func plainText(text string) openai.ChatCompletionMessageParamUnion { return openai.UserMessage(text) }

func withImage(text string) openai.ChatCompletionMessageParamUnion {
	return openai.UserMessage([]openai.ChatCompletionContentPartUnionParam{
		openai.TextContentPart(text),
		openai.ImageContentPart(openai.ChatCompletionContentPartImageImageURLParam{URL: "data:image/png;base64," + image}),
	})
}

func chatParams(a args, message openai.ChatCompletionMessageParamUnion) openai.ChatCompletionNewParams {
	return openai.ChatCompletionNewParams{Model: a.model, Messages: []openai.ChatCompletionMessageParamUnion{message}}
}

func toolParams(a args) openai.ChatCompletionNewParams {
	params := chatParams(a, plainText(a.text))
	params.Tools = []openai.ChatCompletionToolUnionParam{openai.ChatCompletionFunctionTool(openai.FunctionDefinitionParam{
		Name:       "lookup",
		Parameters: openai.FunctionParameters{"type": "object", "properties": map[string]any{"by": map[string]any{"type": "string"}}},
	})}
	return params
}

func openAIChat(message func(string) openai.ChatCompletionMessageParamUnion) func(session, args) (string, error) {
	return func(s session, a args) (string, error) {
		client := openAIClient(s)
		answer, err := client.Chat.Completions.New(s.t.Context(), chatParams(a, message(a.text)))
		if err != nil {
			return "", err
		}
		return by(s.t, answer.Choices[0].Message.Content), nil
	}
}

// readChat returns what pick finds in the chunks of a chat.
func readChat(s session, a args, params openai.ChatCompletionNewParams, pick func(openai.ChatCompletionChunkChoiceDelta) string) (string, error) {
	client := openAIClient(s)
	stream := client.Chat.Completions.NewStreaming(s.t.Context(), params)
	defer stream.Close()
	var all strings.Builder
	for stream.Next() {
		for _, choice := range stream.Current().Choices {
			piece := pick(choice.Delta)
			if piece != "" {
				a.seen()
			}
			all.WriteString(piece)
		}
	}
	return all.String(), stream.Err()
}

func openAIChatStream(s session, a args) (string, error) {
	text, err := readChat(s, a, chatParams(a, plainText(a.text)), func(delta openai.ChatCompletionChunkChoiceDelta) string {
		return delta.Content
	})
	if err != nil {
		return text, err
	}
	return by(s.t, text), nil
}

func openAITool(s session, a args) (string, error) {
	client := openAIClient(s)
	answer, err := client.Chat.Completions.New(s.t.Context(), toolParams(a))
	if err != nil {
		return "", err
	}
	called := answer.Choices[0].Message.ToolCalls[0].Function
	if called.Name != "lookup" {
		s.t.Errorf("the tool is %q", called.Name)
	}
	return argument(called.Arguments)
}

func openAIToolStream(s session, a args) (string, error) {
	arguments, err := readChat(s, a, toolParams(a), func(delta openai.ChatCompletionChunkChoiceDelta) string {
		if len(delta.ToolCalls) == 0 {
			return ""
		}
		return delta.ToolCalls[0].Function.Arguments
	})
	if err != nil {
		return arguments, err
	}
	return argument(arguments)
}

// argument returns the name of the upstream from a tool's arguments.
func argument(arguments string) (string, error) {
	var got struct{ By string }
	err := json.Unmarshal([]byte(arguments), &got)
	return got.By, err
}

func responseParams(a args) responses.ResponseNewParams {
	return responses.ResponseNewParams{
		Model: a.model,
		Input: responses.ResponseNewParamsInputUnion{OfString: param.NewOpt(a.text)},
	}
}

func openAIResponses(s session, a args) (string, error) {
	client := openAIClient(s)
	answer, err := client.Responses.New(s.t.Context(), responseParams(a))
	if err != nil {
		return "", err
	}
	return by(s.t, answer.OutputText()), nil
}

func openAIResponsesStream(s session, a args) (string, error) {
	client := openAIClient(s)
	stream := client.Responses.NewStreaming(s.t.Context(), responseParams(a))
	defer stream.Close()
	var all strings.Builder
	for stream.Next() {
		if event := stream.Current(); event.Type == "response.output_text.delta" {
			a.seen()
			all.WriteString(event.Delta)
		}
	}
	if err := stream.Err(); err != nil {
		return all.String(), err
	}
	return by(s.t, all.String()), nil
}

func openAIEmbeddings(s session, a args) (string, error) {
	client := openAIClient(s)
	answer, err := client.Embeddings.New(s.t.Context(), openai.EmbeddingNewParams{
		Model: a.model, Input: openai.EmbeddingNewParamsInputUnion{OfString: param.NewOpt(a.text)},
	})
	if err != nil {
		return "", err
	}
	if vector := answer.Data[0].Embedding; !reflect.DeepEqual(vector, []float64{0.5, -1.25, 3}) {
		s.t.Errorf("the vector is %v", vector)
	}
	return by(s.t, answer.Model), nil
}

func openAIImage(s session, a args) (string, error) {
	client := openAIClient(s)
	answer, err := client.Images.Generate(s.t.Context(), openai.ImageGenerateParams{Model: a.model, Prompt: a.text})
	if err != nil {
		return "", err
	}
	if answer.Data[0].B64JSON != image {
		s.t.Errorf("the image is %q", answer.Data[0].B64JSON)
	}
	return by(s.t, answer.Data[0].RevisedPrompt), nil
}

func openAIAudio(s session, a args) (string, error) {
	client := openAIClient(s)
	answer, err := client.Audio.Transcriptions.New(s.t.Context(), openai.AudioTranscriptionNewParams{
		File:   openai.File(strings.NewReader("bytes of speech"), "speech.wav", "audio/wav"),
		Model:  a.model,
		Prompt: param.NewOpt(a.text),
	})
	if err != nil {
		return "", err
	}
	return by(s.t, answer.Text), nil
}

func openAIModels(s session, _ args) (string, error) {
	client := openAIClient(s)
	page, err := client.Models.List(s.t.Context())
	if err != nil {
		return "", err
	}
	return by(s.t, page.Data[0].ID), nil
}
