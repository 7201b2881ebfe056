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

// Scripted upstreams: http servers on free loopback ports that speak OpenAI's
// API as far as the tests need it.

import { once } from 'node:events';
import http from 'node:http';

// Upstream records every request that it gets and answers with its script, a
// function of the request as recorded and node's response.
export class Upstream {
  requests = [];

  constructor(name) {
    this.name = name;
    this.key = `sk-of-${name}`; // what the gateway has to send
    this.script = chat(`answer of ${name}`);
    this.server = http.createServer((req, res) => this.#serve(req, res));
  }

  async start() {
    this.server.listen(0, '127.0.0.1');
    await once(this.server, 'listening');
    this.port = this.server.address().port;
  }

  // stop frees the port: whoever connects from then on is refused.
  async stop() {
    if (!this.server.listening) return;
    const closed = once(this.server, 'close');
    this.server.close();
    this.server.closeAllConnections();
    await closed;
  }

  async #serve(req, res) {
    const parts = [];
    try {
      for await (const part of req) parts.push(part);
    } catch {
      return; // left before the request was whole
    }
    const { method, url, headers } = req;
    const request = { method, url, headers, body: Buffer.concat(parts) };
    this.requests.push(request);
    res.setHeader('x-answered-by', this.name);
    this.script(request, res);
  }

  // bodies returns the JSON bodies of the requests.
  get bodies() {
    return this.requests.map((r) => JSON.parse(r.body));
  }
}

// json answers with a status and a document.
export function json(status, document, headers = {}) {
  return (_, res) => {
    res.writeHead(status, { 'content-type': 'application/json', ...headers });
    res.end(JSON.stringify(document));
  };
}

// error answers as OpenAI does when something is wrong.
export function error(status, fields, headers) {
  return json(status, { error: { message: '', type: null, param: null, code: null, ...fields } }, headers);
}

// chat answers a chat completion, streamed if the request says so.
export function chat(text) {
  return (request, res) => {
    const { model, stream: streamed } = JSON.parse(request.body);
    if (streamed) return stream(text.split(/(?<= )/))(request, res);
    json(200, {
      id: 'chatcmpl-1',
      object: 'chat.completion',
      created: 1,
      model,
      choices: [{ index: 0, message: { role: 'assistant', content: text, refusal: null }, logprobs: null, finish_reason: 'stop' }],
      usage: { prompt_tokens: 1, completion_tokens: 2, total_tokens: 3 },
    })(request, res);
  };
}

// stream answers a chat completion stream of the given texts.
export function stream(texts) {
  return (_, res) => {
    openStream(res);
    for (const text of texts) res.write(chunk({ content: text }));
    endStream(res);
  };
}

// openStream sends the head of an event stream and its first chunk, which has a
// role and no content.
export function openStream(res) {
  res.writeHead(200, { 'content-type': 'text/event-stream' });
  res.write(chunk({ role: 'assistant', content: '' }));
}

// endStream sends all that a whole stream has at its end.
export function endStream(res) {
  res.write(chunk({}, 'stop'));
  res.end('data: [DONE]\n\n');
}

// chunk is one event of a chat completion stream.
export function chunk(delta, finish_reason = null) {
  const document = {
    id: 'chatcmpl-1',
    object: 'chat.completion.chunk',
    created: 1,
    model: 'm1',
    choices: [{ index: 0, delta, logprobs: null, finish_reason }],
  };
  return `data: ${JSON.stringify(document)}\n\n`;
}

// reset breaks the connection off without an answer.
export function reset(_, res) {
  res.socket.resetAndDestroy();
}
