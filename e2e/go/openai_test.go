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
	"bytes"
	"encoding/json"
	"errors"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/responses"
	"github.com/openai/openai-go/v3/shared"
)

// The official OpenAI client.
func TestOpenAI(t *testing.T) {
	testMatrix(t, &client{
		name: "openai (Go)",
		wire: "openai",
		calls: map[string]call{
			"chat":             openAIChat,
			"chat stream":      openAIChatStream,
			"tools":            openAITools,
			"tools stream":     openAIToolsStream,
			"responses":        openAIResponses,
			"responses stream": openAIResponsesStream,
			"image input":      openAIImageInput,
			"image generation": openAIImageGeneration,
			"audio upload":     openAIAudioUpload,
			"embeddings":       openAIEmbeddings,
			"models":           openAIModels,
		},
		read: func(err error) (reply, bool) {
			e, ok := errors.AsType[*openai.Error](err)
			if !ok {
				return reply{}, false
			}
			return reply{kind: "*openai.Error", status: e.StatusCode, code: e.Code, header: e.Response.Header}, true
		},
		codes: map[int]string{400: "invalid_request", 404: "model_not_found", 413: "request_too_large", 503: "no_channel_available"},
	})
}

func openAIClient(a ask) openai.Client {
	opts := []option.RequestOption{option.WithBaseURL(a.url + "/v1"), option.WithAPIKey(clientKey), option.WithHTTPClient(a.http)}
	if !a.retry {
		opts = append(opts, option.WithMaxRetries(0))
	}
	for name, value := range a.headers {
		opts = append(opts, option.WithHeader(name, value))
	}
	return openai.NewClient(opts...)
}

func openAIChatParams(a ask) openai.ChatCompletionNewParams {
	return openai.ChatCompletionNewParams{
		Model:    a.model,
		Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage(a.text)},
	}
}

func openAIToolParams(a ask) openai.ChatCompletionNewParams {
	p := openAIChatParams(a)
	p.Tools = []openai.ChatCompletionToolUnionParam{openai.ChatCompletionFunctionTool(shared.FunctionDefinitionParam{
		Name:       "weather",
		Parameters: shared.FunctionParameters{"type": "object", "properties": map[string]any{"city": map[string]any{"type": "string"}}},
	})}
	return p
}

// openAIAsk makes a chat completion.
func openAIAsk(t *testing.T, a ask, p openai.ChatCompletionNewParams) (openai.ChatCompletionMessage, error) {
	c := openAIClient(a)
	completion, err := c.Chat.Completions.New(t.Context(), p)
	if err != nil {
		return openai.ChatCompletionMessage{}, err
	}
	return completion.Choices[0].Message, nil
}

// openAIStream reads a chat completion that is streamed.
func openAIStream(t *testing.T, a ask, p openai.ChatCompletionNewParams) (openai.ChatCompletionMessage, error) {
	c := openAIClient(a)
	stream := c.Chat.Completions.NewStreaming(t.Context(), p)
	defer stream.Close()
	var sum openai.ChatCompletionAccumulator
	for stream.Next() {
		chunk := stream.Current()
		if !sum.AddChunk(chunk) {
			t.Errorf("a chunk that does not fit: %v", chunk.RawJSON())
		}
		if delta := chunk.Choices[0].Delta; delta.Content != "" || len(delta.ToolCalls) > 0 {
			a.received()
		}
	}
	if err := stream.Err(); err != nil {
		return openai.ChatCompletionMessage{}, err
	}
	return sum.Choices[0].Message, nil
}

func openAIToolCall(m openai.ChatCompletionMessage, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	f := m.ToolCalls[0].Function
	return toolCall{f.Name, json.RawMessage(f.Arguments)}, nil
}

func openAIChat(t *testing.T, a ask) (any, error) {
	m, err := openAIAsk(t, a, openAIChatParams(a))
	return m.Content, err
}

func openAIChatStream(t *testing.T, a ask) (any, error) {
	m, err := openAIStream(t, a, openAIChatParams(a))
	return m.Content, err
}

func openAITools(t *testing.T, a ask) (any, error) {
	return openAIToolCall(openAIAsk(t, a, openAIToolParams(a)))
}

func openAIToolsStream(t *testing.T, a ask) (any, error) {
	return openAIToolCall(openAIStream(t, a, openAIToolParams(a)))
}

func openAIResponseParams(a ask) responses.ResponseNewParams {
	return responses.ResponseNewParams{
		Model: a.model,
		Input: responses.ResponseNewParamsInputUnion{OfString: openai.String(a.text)},
	}
}

func openAIResponses(t *testing.T, a ask) (any, error) {
	c := openAIClient(a)
	res, err := c.Responses.New(t.Context(), openAIResponseParams(a))
	if err != nil {
		return nil, err
	}
	return res.OutputText(), nil
}

func openAIResponsesStream(t *testing.T, a ask) (any, error) {
	c := openAIClient(a)
	stream := c.Responses.NewStreaming(t.Context(), openAIResponseParams(a))
	defer stream.Close()
	var text string
	for stream.Next() {
		if delta := stream.Current().Delta; delta != "" {
			text += delta
			a.received()
		}
	}
	return text, stream.Err()
}

func openAIImageInput(t *testing.T, a ask) (any, error) {
	p := openAIChatParams(a)
	picture := openai.ChatCompletionContentPartImageImageURLParam{URL: "data:image/png;base64," + image}
	p.Messages = []openai.ChatCompletionMessageParamUnion{openai.UserMessage(
		[]openai.ChatCompletionContentPartUnionParam{openai.ImageContentPart(picture), openai.TextContentPart(a.text)})}
	m, err := openAIAsk(t, a, p)
	return m.Content, err
}

func openAIImageGeneration(t *testing.T, a ask) (any, error) {
	c := openAIClient(a)
	res, err := c.Images.Generate(t.Context(), openai.ImageGenerateParams{Model: a.model, Prompt: a.text})
	if err != nil {
		return nil, err
	}
	return []string{res.Data[0].B64JSON, res.Data[0].RevisedPrompt}, nil
}

func openAIAudioUpload(t *testing.T, a ask) (any, error) {
	c := openAIClient(a)
	file := openai.File(bytes.NewReader(audio), "speech.wav", "audio/wav")
	p := openai.AudioTranscriptionNewParams{Model: a.model, File: file, Prompt: openai.String(a.text)}
	res, err := c.Audio.Transcriptions.New(t.Context(), p)
	if err != nil {
		return nil, err
	}
	return res.Text, nil
}

func openAIEmbeddings(t *testing.T, a ask) (any, error) {
	c := openAIClient(a)
	input := openai.EmbeddingNewParamsInputUnion{OfString: openai.String(a.text)}
	res, err := c.Embeddings.New(t.Context(), openai.EmbeddingNewParams{Model: a.model, Input: input})
	if err != nil {
		return nil, err
	}
	return []any{res.Data[0].Embedding, res.Model}, nil
}

func openAIModels(t *testing.T, a ask) (any, error) {
	c := openAIClient(a)
	var ids []string
	pages := c.Models.ListAutoPaging(t.Context())
	for pages.Next() {
		ids = append(ids, pages.Current().ID)
	}
	return ids, pages.Err()
}
