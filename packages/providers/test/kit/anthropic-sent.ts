import type { ModelRequest } from '@tallystick/core'
import type { JsonObject, ToolDefinition } from '@tallystick/core/vocabulary'
import { expect } from 'vitest'
import { anthropic, type AnthropicOptions, type AnthropicWarning } from '../../src/anthropic.ts'
import { sseBytes } from './bytes.ts'
import { collect, request } from './collect.ts'
import { brokenRules } from './history-rules.ts'
import { serve } from './loopback.ts'
import { done, start, stop, textBlock } from './streams.ts'

/** A short reply, as bytes. */
export const hello: Uint8Array = sseBytes([start(), ...textBlock(0, '{"sum":5}'), done('end_turn'), stop])

/** The bodies that go over the wire, and the warnings about them. They may break no rule of the vendor. */
export async function sent(options: AnthropicOptions, asked: Partial<ModelRequest> = {}) {
  const server = await serve({ pieces: [hello] })
  const warnings: AnthropicWarning[] = []
  const onWarning = (warning: AnthropicWarning) => void warnings.push(warning)
  const model = anthropic('claude-test-1', {
    apiKey: 'k',
    baseURL: server.url,
    promptCache: 'off',
    onWarning,
    ...options,
  })
  const { signals, failure } = await collect(model, { ...request, ...asked })
  expect(failure).toBeUndefined()
  const { body, headers } = server.arrivals[0]!
  expect(brokenRules(body)).toEqual([])
  return { body, betas: headers['anthropic-beta'], warnings, signals }
}

/** A schema of an object, all of whose properties are required where nothing else is said. */
export const object = (properties: JsonObject, required = Object.keys(properties)): JsonObject => ({
  type: 'object',
  properties,
  required,
})
export const tool = (name: string, inputSchema: JsonObject): ToolDefinition => ({
  name,
  description: 'Does it.',
  inputSchema,
})
