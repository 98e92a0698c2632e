import { describe, expect, it } from 'vitest'
import { openai } from '../src/openai.ts'
import { sseBytes } from './kit/bytes.ts'
import { callsOf, finished, collect, request, textShown } from './kit/collect.ts'
import { call, result, results, user } from './kit/history.ts'
import { type Answer, type Loopback, serve } from './kit/loopback.ts'
import type { Loose } from './kit/loose.ts'
import { ManualClock } from './kit/manual-clock.ts'
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

function executed(item: Readonly<Record<string, unknown>>): unknown {
  const { signals } = foldResponse([created(), added(0, item), itemDone(0, item), completed()])
  return finished(signals)!.parts.map((part) => (part.type === 'provider' ? part.executed : part.type))[0]
}

describe('a call that OpenAI ran itself', () => {
  const done = { status: 'completed' }
  it.each([
    [
      { type: 'mcp_call', id: 'mcp_1', server_label: 'wiki', name: 'ask', arguments: '{"q":1}', error: null },
      { id: 'mcp_1', name: 'wiki/ask', input: { q: 1 }, outcome: 'success' },
    ],
    [
      {
        type: 'mcp_call',
        id: 'mcp_1',
        server_label: 'wiki',
        name: 'ask',
        arguments: '{',
        error: 'gone',
        ...done,
      },
      { id: 'mcp_1', name: 'wiki/ask', input: { text: '{' }, outcome: 'failed' },
    ],
    [
      { type: 'code_interpreter_call', id: 'ci_1', code: '1+1', container_id: 'c', outputs: null, ...done },
      { id: 'ci_1', name: 'code_interpreter', input: { code: '1+1' }, outcome: 'success' },
    ],
    [
      { type: 'file_search_call', id: 'fs_1', queries: ['a'], results: null, status: 'failed' },
      { id: 'fs_1', name: 'file_search', input: { queries: ['a'] }, outcome: 'failed' },
    ],
    [
      {
        ...{
          type: 'image_generation_call',
          id: 'ig_1',
          size: '1024x1024',
          action: 'generate',
          result: 'aGk=',
        },
        ...{
          output: 'x',
          outputs: [1],
          results: [2],
          error: null,
          approval_request_id: 'a',
          container_id: 'c',
        },
        ...done,
      },
      { id: 'ig_1', name: 'image_generation', input: { size: '1024x1024' }, outcome: 'success' },
    ],
    // Who called, and from which set of tools, is not part of what was asked.
    [
      {
        ...{ type: 'file_search_call', id: 'fs_1', queries: ['a'], namespace: 'crm', ...done },
        caller: { type: 'program', id: 'prog_1' },
      },
      { id: 'fs_1', name: 'file_search', input: { queries: ['a'] }, outcome: 'success' },
    ],
  ])('%o is shown as %o', (item, shown) => {
    expect(executed(item)).toEqual(shown)
  })

  it.each([
    ['is of an unknown kind', { type: 'telepathy_call', id: 'tp_1', ...done }],
    ['is not a call', { type: 'compaction', id: 'cmp_1', encrypted_content: 'x' }],
  ])('does not count that %s', (_, item) => {
    expect(executed(item)).toBeUndefined()
  })
})

const events = counted(created(), message(0, 'Hel', 'lo'), completed())
const cutAt = 4
const begun = (ending: 'break' | 'end' | 'stall'): Answer => ({
  pieces: [sseBytes(events.slice(0, cutAt))],
  ending,
})
const rest: Answer = { pieces: [sseBytes(events.slice(cutAt))] }
const model = ({ url: baseURL }: Loopback, background = true) =>
  openai('gpt-test', { apiKey: 'k', baseURL, background })

/** Waits for a request, and lets every pause before it pass. */
async function arrivalAfterPauses(server: Loopback, place: number, clock: ManualClock) {
  while (server.arrivals.length <= place) {
    // The watch for silence is the one other timer.
    if (clock.waiting > 1) clock.advance(1000)
    await new Promise((resolve) => setImmediate(resolve))
  }
  return await server.arrival(place)
}

describe('a response in the background', () => {
  it.each(['break', 'end'] as const)(
    'given a connection that ends early (%s), then the rest of it is sent for',
    async (ending) => {
      const server = await serve(begun(ending), rest)
      const clock = new ManualClock()
      const outcome = collect(model(server), request, clock)
      const { path } = await arrivalAfterPauses(server, 1, clock)
      const { signals, completed: whole } = await outcome
      expect([whole, textShown(signals), finished(signals)?.parts.length]).toEqual([true, 'Hello', 1])
      expect(signals.filter(({ type }) => type === 'model_started')).toHaveLength(1)
      expect(server.arrivals[0]!.body).toMatchObject({ background: true, store: true, stream: true })
      const { pathname, searchParams } = new URL(path, server.url)
      expect(pathname).toBe('/responses/resp_1')
      expect([searchParams.get('stream'), searchParams.get('starting_after')]).toEqual([
        'true',
        `${cutAt - 1}`,
      ])
      expect(path).toContain('reasoning.encrypted_content')
      expect(finished(signals)).not.toHaveProperty('providerState')
    },
  )

  it('given a connection that breaks again and again without a word, then the call fails as cut', async () => {
    const nothing: Answer = { pieces: [], ending: 'end' }
    const server = await serve(begun('end'), nothing)
    const clock = new ManualClock()
    const outcome = collect(model(server), request, clock)
    await arrivalAfterPauses(server, 3, clock)
    expect((await outcome).failure).toMatchObject({ class: 'truncated', retryable: true })
    const cancelled = await server.arrival(4)
    expect(cancelled.path).toBe('/responses/resp_1/cancel')
  })

  it('given a response that is gone, then the call fails as it broke, and may be tried again', async () => {
    const server = await serve(begun('end'), {
      ...{ status: 404, headers: { 'content-type': 'application/json' } },
      pieces: ['{"error":{"message":"Response not found"}}'],
    })
    const clock = new ManualClock()
    const outcome = collect(model(server), request, clock)
    await arrivalAfterPauses(server, 1, clock)
    expect((await outcome).failure).toMatchObject({ class: 'truncated', retryable: true })
  })

  it('given a subscriber that leaves, then the service is told to stop', async () => {
    const server = await serve(begun('stall'), {})
    const subscription = await new Promise<{ unsubscribe(): void }>((resolve) => {
      const left = model(server)
        .stream(request, { clock: new ManualClock() })
        .subscribe((signal) => {
          if (signal.type === 'model_text') setImmediate(() => resolve(left))
        })
    })
    subscription.unsubscribe()
    expect((await server.arrival(1)).path).toBe('/responses/resp_1/cancel')
  })
})

it('given no background, then a break is one, and nothing is sent for', async () => {
  const server = await serve(begun('end'), rest)
  const { failure } = await collect(model(server, false))
  expect([failure?.class, server.arrivals.length]).toEqual(['truncated', 1])
  expect(server.arrivals[0]!.body).not.toHaveProperty('background')
})
