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

// The scripts of upstreams in the wire format of one provider, as ../wire has
// them for the suites of every language.

import { readFileSync } from 'node:fs';

import { json } from './upstream.mjs';

// read returns a provider's wire format.
export const read = (provider) => JSON.parse(readFileSync(new URL(`../wire/${provider}.json`, import.meta.url)));

// fill puts the values of that answer where the document has their names.
export function fill(document, values) {
  const text = JSON.stringify(document).replace(/\{(channel|model)\}/g, (_, name) => values[name]);
  return JSON.parse(text);
}

// events writes the events of a stream.
export function events(wire, list) {
  const separator = wire.separator ?? '\n\n';
  return list.map(({ event, data }) => {
    const text = typeof data === 'string' ? data : JSON.stringify(data);
    return `${event ? `event: ${event}\n` : ''}data: ${text}${separator}`;
  });
}

function open(res) {
  res.writeHead(200, { 'content-type': 'text/event-stream' });
  res.flushHeaders();
}

// answer plays the whole answer to a call.
export function answer(wire, { body, events: list }) {
  if (body) return json(200, body);
  return stream(wire, list);
}

// stream plays a whole stream of these events.
export function stream(wire, list) {
  return (_, res) => {
    open(res);
    for (const text of events(wire, list)) res.write(text);
    res.end();
  };
}

// cutEarly breaks an answer off before anything of its content was sent.
export function cutEarly(wire, { body, events: list, preamble }) {
  return (_, res) => {
    const text = body ? JSON.stringify(body) : events(wire, list.slice(0, preamble)).join('');
    if (body) res.writeHead(200, { 'content-type': 'application/json', 'content-length': text.length });
    else open(res);
    res.write(body ? text.slice(0, text.length / 2) : text, () => res.socket.resetAndDestroy());
  };
}

// cutLate sends the first pieces of a stream's content, waits until the client
// has received some, and ends the stream in that way.
export function cutLate(wire, { events: list, preamble }, received, end) {
  return async (_, res) => {
    open(res);
    for (const text of events(wire, list.slice(0, preamble + 2))) res.write(text);
    await received;
    end(res);
  };
}
