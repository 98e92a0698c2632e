import { describe, expect, it } from 'vitest'
import {
  conventionsCommit,
  finishReason,
  genAi,
  metricKinds,
  operations,
  own,
  toProviderName,
} from '../src/conventions.ts'

describe('the names of the conventions', () => {
  it('are those of the pinned state', () => {
    expect(conventionsCommit).toBe('024a4f944a1291fcb627c9c47da69e79868dd15e')
    expect(Object.values(operations)).toEqual(['invoke_agent', 'chat', 'execute_tool'])
    expect(Object.values(genAi).toSorted()).toEqual([
      'error.type',
      'gen_ai.agent.name',
      'gen_ai.conversation.compacted',
      'gen_ai.conversation.id',
      'gen_ai.input.messages',
      'gen_ai.operation.name',
      'gen_ai.output.messages',
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
      'gen_ai.system_instructions',
      'gen_ai.token.modality',
      'gen_ai.tool.call.arguments',
      'gen_ai.tool.call.id',
      'gen_ai.tool.call.result',
      'gen_ai.tool.definitions',
      'gen_ai.tool.name',
      'gen_ai.tool.type',
      'gen_ai.usage.cache_read.input_tokens',
      'gen_ai.usage.cache_write.input_tokens',
      'gen_ai.usage.input_tokens',
      'gen_ai.usage.output_tokens',
      'gen_ai.usage.reasoning.output_tokens',
    ])
  })

  it('are those of metrics, too, with their units', () => {
    const [call, duration, token] = ['{call}', 's', '{token}']
    expect(Object.fromEntries(Object.entries(metricKinds).map(([name, { unit }]) => [name, unit]))).toEqual({
      'gen_ai.client.inference.duration': duration,
      'gen_ai.client.inference.time_to_first_chunk': duration,
      'gen_ai.client.inference.usage.input_tokens': token,
      'gen_ai.client.inference.usage.output_tokens': token,
      'gen_ai.client.inference.usage.cache_read.input_tokens': token,
      'gen_ai.client.inference.usage.cache_write.input_tokens': token,
      'gen_ai.client.inference.usage.reasoning.output_tokens': token,
      'gen_ai.invoke_agent.duration': duration,
      'gen_ai.invoke_agent.inference_calls': call,
      'gen_ai.invoke_agent.tool_calls': call,
      'gen_ai.execute_tool.duration': duration,
    })
    const durations = [0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92]
    expect(metricKinds['gen_ai.execute_tool.duration'].buckets).toEqual(durations)
    expect(metricKinds['gen_ai.invoke_agent.tool_calls'].buckets).toEqual([1, 2, 4, 8, 16, 32, 64, 128])
    expect(metricKinds['gen_ai.invoke_agent.inference_calls'].buckets).toHaveLength(8)
  })

  it('differ from our own', () => {
    for (const name of Object.values(own)) expect(name).toMatch(/^tallystick\./)
  })

  it.each([
    ['bedrock', 'aws.bedrock'],
    ['mistral', 'mistral_ai'],
    ['xai', 'x_ai'],
    ['anthropic', 'anthropic'],
    ['constructor', 'constructor'],
  ])('call the provider %s %s', (provider, name) => {
    expect(toProviderName(provider)).toBe(name)
  })

  it.each([
    ['end', 'stop'],
    ['tool_use', 'tool_call'],
    ['max_tokens', 'length'],
    ['refused', 'content_filter'],
    ['failed', 'error'],
    ['paused', 'paused'],
  ])('say of a model that stopped as %s: %s', (stopReason, reason) => {
    expect(finishReason(stopReason)).toBe(reason)
  })
})
