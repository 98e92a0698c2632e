import { describe, expect, it } from 'vitest'
import { openai } from '../src/openai.ts'
import { sseBytes } from './kit/bytes.ts'
import { callsOf, finished } from './kit/collect.ts'
import { call, result, results, user } from './kit/history.ts'
import type { Loose } from './kit/loose.ts'
import { carriedAs, foldResponse } from './kit/openai-fold.ts'
import { replyOver, responsesBody } from './kit/openai-requests.ts'
import { added, completed, counted, created, delta, itemDone, message } from './kit/openai-streams.ts'
import { recordedRun } from './kit/recorded-run.ts'

type Fields = Readonly<Record<string, unknown>>

const shell = (more: Fields = {}) => ({
  ...{ type: 'shell_call', id: 'sh_1', call_id: 'call_1', status: 'completed' },
  action: { commands: ['ls', 'pwd'], timeout_ms: 5000, max_output_length: 800 },
  environment: { type: 'local' },
  ...more,
})
const patch = {
  ...{ type: 'apply_patch_call', id: 'apc_1', call_id: 'call_2', status: 'completed' },
  operation: { type: 'update_file', path: 'a.ts', diff: '@@\n-a\n+b' },
}
const nativeTools = { shell: 'get_weather', apply_patch: 'get_time' }
const reply = (...items: readonly Fields[]) => [
  ...[created(), ...items.flatMap((item, at) => [added(at, item), itemDone(at, item)])],
  completed({ output: items }),
]

describe('the tools that models of OpenAI were trained on', () => {
  it('given tools of ours for them, then they are offered in their own form, called, and answered in it', async () => {
    const {
      server,
      result: ended,
      events,
    } = await recordedRun(
      (baseURL) => openai('gpt-test', { apiKey: 'k', baseURL, nativeTools }),
      [
        { pieces: [sseBytes(counted(...reply(shell(), patch)))] },
        { pieces: [sseBytes(counted(created({ id: 'resp_2' }), message(0, 'Done.'), completed()))] },
      ],
    )
    expect(ended).toMatchObject({ reason: 'answered', text: 'Done.' })
    expect(server.arrivals[0]!.body['tools']).toEqual([
      { type: 'shell', environment: { type: 'local' } },
      { type: 'apply_patch' },
    ])
    expect(
      events.flatMap((event) => (event.type === 'tool_request_ready' ? [[event.name, event.input]] : [])),
    ).toEqual([
      ['get_weather', { commands: ['ls', 'pwd'], timeout_ms: 5000, max_output_length: 800 }],
      ['get_time', patch.operation],
    ])
    const [asked, patched, output, report] = server.arrivals[1]!.body['input'].slice(1)
    expect([asked, patched]).toEqual([shell(), patch])
    expect(output).toMatchObject({
      ...{ type: 'shell_call_output', call_id: 'call_1', max_output_length: 800 },
      output: [{ stderr: '', outcome: { type: 'exit', exit_code: 0 } }],
    })
    expect(report).toMatchObject({ type: 'apply_patch_call_output', call_id: 'call_2', status: 'completed' })
  })

  it.each<readonly [string, Fields]>([
    ['an apply_patch_call', patch],
    ['a shell_call', shell()],
    ['a shell_call that does not say where', shell({ environment: null })],
    [
      'a local_shell_call',
      { type: 'local_shell_call', id: 'lsh_1', call_id: 'c', action: {}, status: 'completed' },
    ],
    ['a computer_call', { type: 'computer_call', id: 'cu_1', call_id: 'c', status: 'completed' }],
    [
      'a tool_search_call',
      { type: 'tool_search_call', id: 'ts_1', execution: 'client', status: 'completed' },
    ],
  ])('given %s that nobody runs, then the call fails and says so', (_what, item) => {
    const { signals, error } = foldResponse(counted(...reply(item)))
    expect(error).toMatchObject({ class: 'invalid_request', retryable: false })
    expect(String(error)).toContain(`The reply holds a ${item['type'] as string}`)
    expect(signals.at(-1)?.type).toBe('model_usage')
  })

  it('given a shell in a container of OpenAI’s, then it is OpenAI’s', () => {
    const hosted = shell({ environment: { type: 'container_reference', container_id: 'cntr_1' } })
    const { signals, error } = foldResponse(counted(...reply(hosted)), { nativeTools })
    expect([error, callsOf(signals)]).toEqual([undefined, []])
    const output = { type: 'shell_call_output', id: 'sho_1', call_id: 'call_1', output: [] }
    const unsaid = foldResponse(counted(...reply(shell({ environment: null }), output)))
    expect([unsaid.error, finished(unsaid.signals)?.stopReason]).toEqual([undefined, 'end'])
  })

  const asked = (data: object, more: object = {}) => [
    user('x'),
    replyOver('responses')(
      [{ ...call(1, 'call_1', { input: { commands: ['ls'] } }), opaque: carriedAs('responses', data) }],
      more,
    ),
  ]
  const outputOf = (text: string, outcome: 'success' | 'failed' = 'success') => {
    const answer = results(result(1, { outcome, content: [{ type: 'text', text }] }))
    return responsesBody([...asked({ item: shell() }), answer]).input.at(-1).output[0]
  }

  it('given what commands wrote as an object, then each stream is in its place', () => {
    const told = { stdout: 'a', stderr: 'b', exitCode: 2 }
    expect(outputOf(JSON.stringify(told))).toEqual({
      ...{ stdout: 'a', stderr: 'b', outcome: { type: 'exit', exit_code: 2 } },
    })
    expect(outputOf(JSON.stringify({ stdout: 'a', timedOut: true }))).toEqual({
      ...{ stdout: 'a', stderr: '', outcome: { type: 'timeout' } },
    })
    expect(outputOf('plain')).toEqual({
      stdout: 'plain',
      stderr: '',
      outcome: { type: 'exit', exit_code: 0 },
    })
    expect(outputOf('no', 'failed')).toEqual({
      ...{ stdout: '', stderr: 'Error (failed): no', outcome: { type: 'exit', exit_code: 1 } },
    })
  })

  it('given another model later, then the call is one of a function', () => {
    const other = { model: { provider: 'openai', api: 'responses', modelId: 'other' } }
    const body = responsesBody([...asked({ item: shell() }, other), results(result(1))])
    expect(body.input.slice(1).map(({ type }: Loose) => type)).toEqual([
      'function_call',
      'function_call_output',
    ])
  })
})

describe('tools that xAI runs', () => {
  const search = {
    ...{
      type: 'custom_tool_call',
      id: 'ctc_1',
      call_id: 'xs_1',
      name: 'x_keyword_search',
      status: 'completed',
    },
    input: '{"query":"tally"}',
  }
  const events = counted(
    ...[created(), added(0, { ...search, input: '' }), delta('custom_tool_call_input', 0, search.input)],
    ...[itemDone(0, search), message(1, 'Found.'), completed()],
  )

  it('given a call that nobody offered beside tools of the provider, then it is the provider’s', () => {
    const { signals } = foldResponse(events, { hasProviderTools: true })
    expect(callsOf(signals)).toEqual([])
    expect(finished(signals)).toMatchObject({
      stopReason: 'end',
      parts: [
        {
          ...{ type: 'provider', kind: 'custom_tool_call' },
          executed: { id: 'ctc_1', name: 'x_keyword_search', input: { query: 'tally' }, outcome: 'success' },
        },
        { type: 'text', text: 'Found.' },
      ],
    })
  })

  it('given no such tools, or a tool of ours, then it is a call', () => {
    expect(callsOf(foldResponse(events).signals)).toHaveLength(1)
    const known = foldResponse(events, { hasProviderTools: true, knows: () => true })
    expect(callsOf(known.signals)).toHaveLength(1)
  })
})
