import { describe, expect, it } from 'vitest'
import {
  conventionsCommit,
  finishReason,
  genAi,
  operations,
  own,
  providerName,
} from '../src/conventions/names.ts'

describe('the names of the conventions', () => {
  it('are those of the pinned state', () => {
    expect(conventionsCommit).toBe('024a4f944a1291fcb627c9c47da69e79868dd15e')
    expect(Object.values(operations)).toEqual(['invoke_agent', 'chat', 'execute_tool'])
    expect(Object.values(genAi).toSorted()).toEqual([
      'error.type',
      'gen_ai.agent.name',
      'gen_ai.conversation.compacted',
      'gen_ai.conversation.id',
      'gen_ai.operation.name',
      'gen_ai.output.type',
      'gen_ai.provider.name',
      'gen_ai.request.max_tokens',
      'gen_ai.request.model',
      'gen_ai.request.reasoning.level',
      'gen_ai.request.seed',
      'gen_ai.request.stop_sequences',
      'gen_ai.request.stream',
      'gen_ai.request.temperature',
      'gen_ai.request.top_p',
      'gen_ai.response.finish_reasons',
      'gen_ai.response.id',
      'gen_ai.response.model',
      'gen_ai.response.time_to_first_chunk',
      'gen_ai.tool.call.id',
      'gen_ai.tool.name',
      'gen_ai.tool.type',
      'gen_ai.usage.cache_read.input_tokens',
      'gen_ai.usage.cache_write.input_tokens',
      'gen_ai.usage.input_tokens',
      'gen_ai.usage.output_tokens',
      'gen_ai.usage.reasoning.output_tokens',
    ])
  })

  it('differ from our own', () => {
    for (const name of Object.values(own)) expect(name).toMatch(/^tallystick\./)
  })

  it.each([
    ['azure', 'azure.ai.openai'],
    ['bedrock', 'aws.bedrock'],
    ['amazon-bedrock', 'aws.bedrock'],
    ['vertex', 'gcp.vertex_ai'],
    ['gemini', 'gcp.gemini'],
    ['google', 'gcp.gen_ai'],
    ['mistral', 'mistral_ai'],
    ['moonshot', 'moonshot_ai'],
    ['xai', 'x_ai'],
    ['anthropic', 'anthropic'],
    ['openai', 'openai'],
    ['constructor', 'constructor'],
  ])('call the provider %s %s', (provider, name) => {
    expect(providerName(provider)).toBe(name)
  })

  it.each([
    ['end', 'stop'],
    ['tool_use', 'tool_call'],
    ['max_tokens', 'length'],
    ['context_exceeded', 'length'],
    ['refused', 'content_filter'],
    ['content_filtered', 'content_filter'],
    ['cancelled', 'error'],
    ['failed', 'error'],
    ['paused', 'paused'],
  ])('say of a model that stopped as %s: %s', (stopReason, reason) => {
    expect(finishReason(stopReason)).toBe(reason)
  })
})
