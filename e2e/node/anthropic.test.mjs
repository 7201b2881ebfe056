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

// The official Anthropic client, unmodified.

import Anthropic from '@anthropic-ai/sdk';

import { clientKey } from './gateway.mjs';
import { image, matrix } from './matrix.mjs';

const say = (content) => ({ max_tokens: 100, messages: [{ role: 'user', content }] });
const schema = { type: 'object', properties: { city: { type: 'string' } } };
const tools = [{ name: 'weather', description: 'The weather of a city', input_schema: schema }];
const picture = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: image } };

// read passes each event's piece of content on, and returns them joined.
async function read(events, pieceOf, received) {
  let text = '';
  for await (const event of await events) {
    const piece = event.type === 'content_block_delta' && pieceOf(event.delta);
    if (!piece) continue;
    text += piece;
    received();
  }
  return text;
}

const textOf = ({ content }) => content.map((block) => block.text).join('');

matrix({
  name: 'anthropic (Node)',
  wire: 'anthropic',
  retries: true,
  connect: (baseURL, { headers, retry }) =>
    new Anthropic({ baseURL, apiKey: clientKey, defaultHeaders: headers, ...(retry ? {} : { maxRetries: 0 }) }),
  status: (err) => err.status,
  code: (err) => err.type,
  header: (err, name) => err.headers.get(name),
  errors: {
    400: [Anthropic.BadRequestError, 'invalid_request_error'],
    404: [Anthropic.NotFoundError, 'not_found_error'],
    413: [Anthropic.ContentTooLargeError, 'request_too_large'],
    503: [Anthropic.ServiceUnavailableError, 'overloaded_error'],
  },
  calls: {
    chat: async (client, { model, text }) => textOf(await client.messages.create({ model, ...say(text) })),
    'chat stream': (client, { model, text, received }) =>
      read(client.messages.create({ model, ...say(text), stream: true }), (delta) => delta.text, received),
    tools: async (client, { model, text }) => {
      const { content } = await client.messages.create({ model, ...say(text), tools });
      return { name: content[0].name, arguments: content[0].input };
    },
    'tools stream': async (client, { model, text, received }) => {
      const stream = client.messages.stream({ model, ...say(text), tools }).on('inputJson', received);
      const { content } = await stream.finalMessage();
      return { name: content[0].name, arguments: content[0].input };
    },
    'image input': async (client, { model, text }) =>
      textOf(await client.messages.create({ model, ...say([picture, { type: 'text', text }]) })),
    'token count': async (client, { model, text }) => {
      const { messages } = say(text);
      return (await client.messages.countTokens({ model, messages })).input_tokens;
    },
    models: async (client) => {
      const ids = [];
      for await (const { id } of client.models.list()) ids.push(id);
      return ids;
    },
  },
});
