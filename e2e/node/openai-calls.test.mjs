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

// Every call of the official OpenAI client, unmodified. More of its behaviour is
// in openai.test.mjs.

import OpenAI, { toFile } from 'openai';

import { clientKey } from './gateway.mjs';
import { audio, image, matrix } from './matrix.mjs';

const say = (content) => [{ role: 'user', content }];
const parameters = { type: 'object', properties: { city: { type: 'string' } } };
const tools = [{ type: 'function', function: { name: 'weather', parameters } }];
const picture = { type: 'image_url', image_url: { url: `data:image/png;base64,${image}` } };

const textOf = ({ choices }) => choices[0].message.content;
const callOf = (call) => ({ name: call.name, arguments: JSON.parse(call.arguments) });

// read passes each piece of content on, and returns them all.
async function read(chunks, pieceOf, received) {
  const pieces = [];
  for await (const chunk of await chunks) {
    const piece = pieceOf(chunk);
    if (!piece) continue;
    received();
    pieces.push(piece);
  }
  return pieces;
}

// joined puts the pieces of a tool call together.
const joined = (pieces) => ({
  name: pieces.map((piece) => piece.name ?? '').join(''),
  arguments: pieces.map((piece) => piece.arguments ?? '').join(''),
});

matrix({
  name: 'openai (Node)',
  wire: 'openai',
  retries: true,
  connect: (url, { headers, retry }) =>
    new OpenAI({ baseURL: `${url}/v1`, apiKey: clientKey, defaultHeaders: headers, ...(retry ? {} : { maxRetries: 0 }) }),
  status: (err) => err.status,
  code: (err) => err.code,
  header: (err, name) => err.headers.get(name),
  errors: {
    400: [OpenAI.BadRequestError, 'invalid_request'],
    404: [OpenAI.NotFoundError, 'model_not_found'],
    413: [OpenAI.APIError, 'request_too_large'],
    503: [OpenAI.InternalServerError, 'no_channel_available'],
  },
  calls: {
    chat: async ({ chat }, { model, text }) => textOf(await chat.completions.create({ model, messages: say(text) })),
    'chat stream': async ({ chat }, { model, text, received }) => {
      const chunks = chat.completions.create({ model, messages: say(text), stream: true });
      return (await read(chunks, ({ choices }) => choices[0].delta.content, received)).join('');
    },
    tools: async ({ chat }, { model, text }) => {
      const { choices } = await chat.completions.create({ model, messages: say(text), tools });
      return callOf(choices[0].message.tool_calls[0].function);
    },
    'tools stream': async ({ chat }, { model, text, received }) => {
      const chunks = chat.completions.create({ model, messages: say(text), tools, stream: true });
      return callOf(joined(await read(chunks, ({ choices }) => choices[0].delta.tool_calls?.[0].function, received)));
    },
    responses: async ({ responses }, { model, text }) => (await responses.create({ model, input: text })).output_text,
    'responses stream': async ({ responses }, { model, text, received }) => {
      const events = responses.create({ model, input: text, stream: true });
      return (await read(events, ({ delta }) => delta, received)).join('');
    },
    'image input': async ({ chat }, { model, text }) =>
      textOf(await chat.completions.create({ model, messages: say([picture, { type: 'text', text }]) })),
    'image generation': async ({ images }, { model, text }) => {
      const { data } = await images.generate({ model, prompt: text });
      return [data[0].b64_json, data[0].revised_prompt];
    },
    'audio upload': async (client, { model, text }) => {
      const file = await toFile(audio, 'speech.wav', { type: 'audio/wav' });
      return (await client.audio.transcriptions.create({ model, file, prompt: text })).text;
    },
    embeddings: async ({ embeddings }, { model, text }) => {
      const answer = await embeddings.create({ model, input: text, encoding_format: 'float' });
      return [answer.data[0].embedding, answer.model];
    },
    models: async ({ models }) => {
      const ids = [];
      for await (const { id } of models.list()) ids.push(id);
      return ids;
    },
  },
});
