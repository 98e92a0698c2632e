import { defineAgent, type Agent, type Ledger } from '@tallystick/core'
import { scriptedModel, testTool } from '@tallystick/testkit'
import { expect } from 'vitest'
import { answerOf, openOffice, type Office } from './office.ts'

/** An agent with a tool that fails for an amount of 13, and pays others. */
function clerk(): Agent {
  const pay = testTool({
    name: 'pay',
    effect: 'write',
    run: ({ input }) => {
      if (input['usd'] === 13) throw new Error('an unlucky amount')
      return `paid ${JSON.stringify(input['usd'])} USD`
    },
  })
  const steps = [
    {
      toolCalls: [
        { name: 'pay', input: { usd: 5, to: { name: 'Ada' } } },
        { name: 'pay', input: { usd: 13, to: { name: 'Bob' } } },
      ],
      usage: { inputTokens: 10, outputTokens: 2 },
    },
    { text: 'Half of it is paid.', usage: { inputTokens: 20, outputTokens: 5 } },
  ]
  const model = scriptedModel([...steps, ...steps, ...steps])
  return defineAgent({ name: 'clerk', instructions: 'Pay.', model, tools: [pay] })
}

/** Starts a run, and waits until it has ended. */
async function ended(office: Office, as: string, body: object = {}): Promise<string> {
  const runId = await office.start(as, body)
  await office.send(`/runs/${runId}/result?waitMs=20000`, as)
  return runId
}

/** What the routes that look into runs promise of every ledger, by claim. */
export const inspectionCases: Readonly<Record<string, (ledger: Ledger) => Promise<void>>> = {
  async 'lists runs with what they began with, did and came to'(ledger) {
    const office = await openOffice({ ledger, agents: [clerk()] })
    const runId = await ended(office, 'boss', { input: 'Pay Ada and Bob.', tags: ['night'] })
    const { runs } = await answerOf(await office.send('/runs'))
    expect(runs).toMatchObject([
      {
        ...{ runId, status: 'done', agent: 'clerk', firstWords: 'Pay Ada and Bob.', tags: ['night'] },
        ...{ turns: 2, toolCalls: 2, reason: 'answered' },
        tools: [
          { name: 'pay', outcome: 'success' },
          { name: 'pay', outcome: 'failed' },
        ],
        worst: { what: 'failed', text: 'pay failed' },
      },
    ])
  },

  async 'finds runs by each filter, and by all of them together'(ledger) {
    const office = await openOffice({ ledger, agents: [clerk()] })
    const first = await ended(office, 'ada', { tags: ['night'], sessionId: 'one' })
    const second = await ended(office, 'bob', { input: 'Something else.' })
    const find = async (query: string, as = 'boss'): Promise<readonly string[]> => {
      const { runs } = await answerOf(await office.send(`/runs?${query}`, as))
      return (runs as readonly { readonly runId: string }[]).map(({ runId }) => runId)
    }
    expect(await find('')).toEqual([second, first])
    expect(await find('tool=pay&outcome=failed')).toEqual([second, first])
    expect(await find('tool=pay&outcome=denied')).toEqual([])
    expect(await find('subject=ada')).toEqual([first])
    expect(await find('tag=night')).toEqual([first])
    expect(await find('sessionId=one&tool=pay')).toEqual([first])
    expect(await find('q=ELSE')).toEqual([second])
    expect(await find('status=done&agent=clerk&tag=night&since=1')).toEqual([first])
    expect(await find('status=failed')).toEqual([])
    expect(await find('reason=answered')).toEqual([second, first])
    expect(await find('reason=turn_limit')).toEqual([])
    const [newest] = (await answerOf(await office.send('/runs')))['runs'] as readonly {
      readonly startedAt: number
    }[]
    const begun = newest!.startedAt
    expect(await find(`startedSince=${begun}&startedUntil=${begun + 1}&roots=true`)).toContain(second)
    expect(await find(`startedSince=${begun + 1}`)).toEqual([])
    expect(await find(`startedUntil=${begun}&tag=night`)).toEqual(
      (await find(`startedSince=${begun}`)).includes(first) ? [] : [first],
    )
    expect(await find('tool=pay', 'ada')).toEqual([first])
    expect(await find('subject=ada', 'bob')).toEqual([])
    expect(await find(`tool=pay&before=${second}`)).toEqual([first])
    const paged = await answerOf(await office.send('/runs?tool=pay&limit=1'))
    expect(paged).toMatchObject({ runs: [{ runId: second }], before: second })
  },

  async 'counts what a caller sees, and nothing else'(ledger) {
    const office = await openOffice({ ledger, agents: [clerk()] })
    await ended(office, 'ada')
    await ended(office, 'bob', { sessionId: 'one' })
    const sum = async (as: string, its = office): Promise<readonly unknown[]> => {
      const { buckets } = await answerOf(await its.send('/stats?by=day', as))
      return (buckets as readonly Record<string, unknown>[]).map(({ runs, done, tokens }) => [
        runs,
        done,
        tokens,
      ])
    }
    expect(await sum('boss')).toEqual([[2, 2, 74]])
    expect(await sum('ada')).toEqual([[1, 1, 37]])
    const ofSession = await openOffice({
      ledger,
      authorize: () => ({ name: 'eve', sees: { sessions: (name) => name === 'one' } }),
    })
    expect(await sum('eve', ofSession)).toEqual([[1, 1, 37]])
    expect(
      (await answerOf(await office.send('/stats?startedSince=1&startedUntil=3600000')))['buckets'],
    ).toEqual([])
    const { buckets } = await answerOf(await office.send('/stats'))
    expect(buckets).toMatchObject([{ reasons: {}, failed: 0, suspended: 0, p50Ms: expect.any(Number) }])
  },

  async 'searches calls and messages, a page after the other'(ledger) {
    const office = await openOffice({ ledger, agents: [clerk()] })
    const first = await ended(office, 'ada')
    const second = await ended(office, 'bob')
    const search = async (query: string, as = 'boss'): Promise<readonly unknown[]> => {
      const found: unknown[] = []
      for (let after: string | undefined = ''; after !== undefined;) {
        const place: string = after === '' ? '' : `&after=${after}`
        const page = await answerOf(await office.send(`/search?${query}${place}&limit=1`, as))
        const { hits } = page as unknown as { readonly hits: readonly { runId: string; excerpt: string }[] }
        found.push(...hits.map(({ runId, excerpt }) => [runId, excerpt]))
        after = page['after'] as string | undefined
      }
      return found
    }
    const failed = 'pay {"to":{"name":"Bob"},"usd":13} an unlucky amount'
    expect(await search('tool=pay&outcome=failed')).toMatchObject([
      [second, expect.stringContaining('pay {"to":{"name":"Bob"},"usd":13}')],
      [first, expect.stringContaining('"usd":13')],
    ])
    expect(failed).toContain('unlucky')
    expect(await search('input=to.name=Ada&input=usd=5', 'ada')).toHaveLength(1)
    expect(await search('q=HALF')).toMatchObject([
      [second, 'Half of it is paid.'],
      [first, 'Half of it is paid.'],
    ])
    expect(await search('q=half', 'bob')).toMatchObject([[second, 'Half of it is paid.']])
    expect(await search('q=half&subject=ada', 'bob')).toEqual([])
    // In the runs that the filters of a list let through.
    expect(await search('q=half&reason=answered&status=done&roots=true')).toHaveLength(2)
    expect(await search('q=half&reason=turn_limit')).toEqual([])
    expect(await search('q=half&status=unfinished')).toEqual([])
    expect(await search('q=half&startedUntil=1')).toEqual([])
  },

  async 'makes a request again that has the recorded digest, and explains it'(ledger) {
    const office = await openOffice({ ledger, agents: [clerk()] })
    const runId = await ended(office, 'boss')
    const last = await answerOf(await office.send(`/runs/${runId}/request`))
    expect(last).toMatchObject({ runId, turn: 2, attempt: 1, matches: true })
    expect((last['request'] as { messages: readonly unknown[] }).messages).toHaveLength(3)
    const first = await answerOf(await office.send(`/runs/${runId}/request?turn=1`))
    expect(first).toMatchObject({ turn: 1, matches: true, request: { instructions: 'Pay.' } })
    expect(await answerOf(await office.send(`/runs/${runId}/explain?turn=1`))).toMatchObject({
      ...{ runId, turn: 1, requestDigest: first['requestDigest'] },
      items: [{ kind: 'instructions' }, { kind: 'tools' }, { kind: 'message', index: 0 }],
    })
    expect(await answerOf(await office.send(`/runs/${runId}/steps`))).toMatchObject({
      steps: [{ turn: 1, calls: [{ name: 'pay' }, { name: 'pay', outcome: 'failed' }] }, { turn: 2 }],
    })
    expect(await answerOf(await office.send(`/runs/${runId}/state?at=1`))).toMatchObject({ seq: 1 })
    expect(await answerOf(await office.send(`/runs/${runId}/verify`))).toMatchObject({ ok: true })
  },

  async 'compares two runs, and exports one'(ledger) {
    const office = await openOffice({ ledger, agents: [clerk()] })
    const one = await ended(office, 'boss')
    const two = await ended(office, 'boss', { input: 'Something else.' })
    expect(await answerOf(await office.send(`/runs/${one}/diff?with=${two}`))).toMatchObject({
      shared: 1,
      left: { runId: one },
      right: { runId: two },
    })
    const lines = (await (await office.send(`/runs/${one}/export`)).text()).trimEnd().split('\n')
    expect(lines.map((line) => (JSON.parse(line) as { seq: number }).seq)).toEqual(
      lines.map((_line, index) => index + 1),
    )
    const test = await answerOf(await office.send(`/runs/${one}/regression`))
    expect(test).toMatchObject({ runId: one, fixtureName: `run-${one.slice(-8)}.jsonl` })
    expect(test['test']).toContain(`new URL('run-${one.slice(-8)}.jsonl', import.meta.url)`)
  },

  async 'hands out the record, row by row'(ledger) {
    const office = await openOffice({ ledger, agents: [clerk()] })
    const runId = await ended(office, 'boss')
    const { rows, after } = await answerOf(await office.send(`/runs/${runId}/record`))
    const seqs = (rows as readonly { seq: number; hash: string; salt: string }[]).map(({ seq }) => seq)
    const head = await ledger.head(runId as never)
    expect({ last: seqs.at(-1), after }).toEqual({ last: head?.seq, after: undefined })
    const rest = await answerOf(await office.send(`/runs/${runId}/record?after=${seqs.length - 1}`))
    expect(rest['rows']).toMatchObject([{ run_id: runId, seq: head?.seq, hash: expect.any(String) }])
  },
}
