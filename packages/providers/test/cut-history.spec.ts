import type { Message } from '@tallystick/core'
import type { AssistantPart, JsonObject } from '@tallystick/core/vocabulary'
import { describe, expect, it } from 'vitest'
import { assistant, body, call, result, results, user } from './kit/history.ts'
import { kept, replyOver, responsesBody } from './kit/openai-requests.ts'
import { brokenRules } from './kit/history-rules.ts'
import { brokenResponsesRules } from './kit/responses-rules.ts'
import { ownOpaque } from './kit/transcripts.ts'
import type { Loose } from './kit/loose.ts'

const summary = user('What was said before: the player rolls dice.')

describe('a history of Anthropic that a compaction cut after running code', () => {
  const caller = { type: 'code_execution_20250825', tool_id: 'srvtoolu_1' }
  const block = (fields: JsonObject & { readonly type: string }): AssistantPart => ({
    ...{ type: 'provider', kind: fields.type, opaque: ownOpaque(fields) },
  })
  const code = block({
    ...{ type: 'server_tool_use', id: 'srvtoolu_1', name: 'code_execution', input: {} },
  })
  const ran = block({ type: 'code_execution_tool_result', tool_use_id: 'srvtoolu_1', content: {} })
  const roll = (at: number) => call(at, `toolu_${at}`, { opaque: ownOpaque({ caller }) })
  const whole: readonly Message[] = [
    user('Roll twice'),
    assistant([code, roll(1)], { stopReason: 'tool_use' }),
    results(result(1)),
    assistant([roll(2)], { stopReason: 'tool_use' }),
    results(result(2)),
    assistant([ran, { type: 'text', text: 'Seven.' }]),
    user('Again'),
  ]
  const calls = (sent: Loose) =>
    sent.messages.flatMap(({ content }: Loose) => content.filter(({ type }: Loose) => type === 'tool_use'))

  it('has no call left that names a use which is gone', () => {
    const sent = body([summary, ...whole.slice(3)])
    expect(calls(sent)).toMatchObject([{ id: 'toolu_2' }])
    expect(calls(sent)[0]).not.toHaveProperty('caller')
    expect(JSON.stringify(sent)).not.toContain('srvtoolu_1')
    expect(brokenRules(sent)).toEqual([])
  })

  it('keeps the callers that are still there', () => {
    const other = { type: 'code_execution_20250825', tool_id: 'srvtoolu_2' }
    const again: readonly Message[] = [
      assistant(
        [
          block({ type: 'server_tool_use', id: 'srvtoolu_2', name: 'code_execution', input: {} }),
          call(3, 'toolu_3', { opaque: ownOpaque({ caller: other }) }),
        ],
        { stopReason: 'tool_use' },
      ),
      results(result(3)),
    ]
    const sent = body([summary, ...whole.slice(3), ...again])
    expect(calls(sent).map((one: Loose) => [one.id, one.caller])).toEqual([
      ['toolu_2', undefined],
      ['toolu_3', other],
    ])
    expect(brokenRules(sent)).toEqual([])
  })

  it('and one that was not cut keeps its callers', () => {
    expect(calls(body(whole)).map((one: Loose) => one.caller)).toEqual([caller, caller])
  })
})

describe('a history of OpenAI that a compaction cut after a program', () => {
  const reply = replyOver('responses')
  const caller = { type: 'program', caller_id: 'prog_1' }
  const item = (fields: JsonObject & { readonly type: string }, at: number): AssistantPart => ({
    ...{ type: 'provider', kind: fields.type, ...kept(fields, at) },
  })
  const program = item({ type: 'program', id: 'p', call_id: 'prog_1', code: 'f()', fingerprint: 'x' }, 0)
  const output = item({ type: 'program_output', id: 'po', call_id: 'prog_1', result: '7' }, 0)
  const roll = (at: number) =>
    call(at, `call_${at}`, kept({ type: 'function_call', id: `fc_${at}`, caller }, 1))
  const whole: readonly Message[] = [
    user('Roll twice'),
    reply([program, roll(1)], { stopReason: 'tool_use' }),
    results(result(1)),
    reply([roll(2)], { stopReason: 'tool_use' }),
    results(result(2)),
    reply([output, { type: 'text', text: 'Seven.' }]),
    user('Again'),
  ]

  it('has neither a call nor an answer left that names a program which is gone, nor what it gave', () => {
    const sent = responsesBody([summary, ...whole.slice(3)])
    expect(JSON.stringify(sent)).not.toContain('prog_1')
    expect(sent.input.map(({ type = 'message' }: Loose) => type)).toEqual([
      ...['message', 'function_call', 'function_call_output', 'message', 'message'],
    ])
    expect(brokenResponsesRules(sent)).toEqual([])
  })

  it('and one that was not cut keeps its callers, in both halves', () => {
    const sent = responsesBody(whole)
    expect(sent.input.flatMap((one: Loose) => one.caller ?? [])).toEqual([caller, caller, caller, caller])
    expect(sent.input.some(({ type }: Loose) => type === 'program_output')).toBe(true)
  })
})
