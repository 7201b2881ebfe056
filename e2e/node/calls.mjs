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

// What the calls of all clients have in common.

import assert from 'node:assert/strict';

// image is a PNG's signature in base64.
export const image = 'iVBORw0KGgo=';

// schema is of the arguments of the tool that is offered.
export const schema = { type: 'object', properties: { by: { type: 'string' } }, required: ['by'] };

// by returns the name at the end of what an upstream answered.
export function by(text) {
  assert.match(text, /^(answer of |vectors-of-|drawn by |heard by |model-of-)[ab]$/);
  return text.at(-1);
}

// byNumber returns the name of the upstream whose number it is.
export const byNumber = (number) => String.fromCharCode(number);

// is returns a check of an exception: its class and what else must hold.
export const is = (type, holds = () => true) => (err) => {
  assert.ok(err instanceof type, `raised ${err?.stack}`);
  assert.ok(holds(err), `raised ${err?.stack}`);
};

// terminated checks what fetch raises for a body that broke off.
export function terminated(err) {
  assert.ok(err instanceof TypeError, `raised ${err?.stack}`);
  assert.match(err.message, /terminated/);
}
