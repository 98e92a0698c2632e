import {
  defineAgent,
  type Agent,
  type Ledger,
  type Model,
  type RunId,
  type RuntimeEvent,
} from '@tallystick/core'
import { type ModelSignal } from '@tallystick/core/vocabulary'
import { scriptedModel, testTool, type ScriptedReply } from '@tallystick/testkit'
import { countEventsToFold, foldTo } from '@tallystick/ledger'
import { sqliteLedger } from '@tallystick/ledger/sqlite'
import { from, of } from 'rxjs'
import { describe, expect, it } from 'vitest'
import { formatTime } from '../src/command/text.ts'
import { readRun } from '../src/runs/read-run.ts'
import { atTerminal } from './kit/pseudo-terminal.ts'
import { openShop } from './kit/shop.ts'
import { json, tallystickHere } from './kit/tallystick.ts'

const turnsAlike = 20

/** An agent whose first attempt breaks off, which then looks for the same in vain, and gives up. */
function seeker(searches = turnsAlike): Agent {
  const search = testTool({ name: 'search_orders', run: () => '[]' })
  const looking = Array.from({ length: searches }, (_, place): ScriptedReply => ({
    toolCalls: [{ name: 'search_orders', input: { query: `order ${place}`, limit: 5 } }],
  }))
  const broken: ScriptedReply = {
    text: 'The balance is 12',
    toolCalls: [{ name: 'search_orders', input: { query: 'never' } }],
    fail: 'overloaded',
  }
  return defineAgent({
    ...{ name: 'seeker', instructions: '', tools: [search] },
    retry: { maxAttempts: 2, baseMs: 1 },
    limits: { maxTurns: 100, maxToolCalls: 100 },
    model: scriptedModel([
      broken,
      { ...looking[0], text: 'I look.' },
      ...looking,
      { text: 'No such order.' },
    ]),
  })
}

/** An agent that says so much that a fold of its run goes far. */
function talker(): Agent {
  // Deltas of one part would be joined: two parts take turns.
  const pieces = Array.from({ length: 5_500 }, (_, piece) => ({ part: piece % 2, text: `${piece} ` }))
  const joinPart = (asked: number): string =>
    pieces.map(({ part, text }) => (part === asked ? text : '')).join('')
  const signals: readonly ModelSignal[] = [
    ...pieces.map((piece) => ({ type: 'model_text', ...piece }) as const),
    {
      ...{ type: 'model_finished', stopReason: 'end' },
      parts: [0, 1].map((part) => ({ part, type: 'text', text: joinPart(part) })),
    },
  ]
  const model: Model = { ...{ provider: 'a', api: 'b', modelId: 'c' }, stream: () => from(signals) }
  return defineAgent({ name: 'talker', instructions: '', model })
}

describe('show', () => {
  it('of a long run at an event tells how it ended since', async () => {
    await using shop = await openShop()
    const { runId } = await shop.start(talker())
    const past = await tallystickHere('show', shop.ledgerPath, runId, '--at', '5400', '--json')
    expect(json(past.stdout)).toMatchObject({ seq: 5_400, now: { status: 'done', reason: 'answered' } })
  })

  it('says when a run that waits continues by itself', async () => {
    await using shop = await openShop()
    const { runId, wakeAt } = await shop.start(undefined, { limits: { maxApprovalMs: 3_600_000 } })
    const at = formatTime(wakeAt!)
    const { stdout } = await tallystickHere('show', shop.ledgerPath, runId)
    expect(stdout).toMatch(/^continues {2}by itself at (.+)$/m)
    expect(stdout).toContain(`by itself at ${at}`)
    const shown = await tallystickHere('show', shop.ledgerPath, runId, '--json')
    expect(json(shown.stdout)).toMatchObject({ status: 'suspended', wakeAt: at })
    const endless = await shop.start()
    expect((await tallystickHere('show', shop.ledgerPath, endless.runId)).stdout).not.toContain('by itself')
  })

  it('ties each message to its events, and tells what failed and was withdrawn', async () => {
    await using shop = await openShop()
    const { runId } = await shop.start(seeker())
    const { stdout } = await tallystickHere('show', shop.ledgerPath, runId)
    expect(stdout).toMatch(/^user \(event 2, \S+Z\)\n {4}Buy tea\.\n/m)
    expect(stdout).toMatch(
      /^attempt 1 failed \(turn 1, events 3-\d+, \S+Z, took [\d.]+ m?s, tried again after [\d.]+ m?s\)\n {4}overloaded: .*\n {2}withdrawn:\n {4}The balance is 12\n {2}withdrawn: the request of search_orders call_\w+\n/m,
    )
    expect(stdout).toMatch(
      /^assistant \(turn 1, events \d+-\d+, \S+Z, took [\d.]+ m?s, tool_use\)\n {4}I look\.\n/m,
    )
    expect(stdout).toMatch(/^took {5}[\d.]+ m?s/m)
  })

  it('tells what a text leans on, and what the provider found', async () => {
    await using shop = await openShop()
    const opaque = { provider: 'test', api: 'test', data: {} }
    const pages = { from: 3, to: 4 }
    const citing: Model = {
      ...{ provider: 'test', api: 'test', modelId: 'm' },
      stream: () =>
        of<ModelSignal[]>(
          { type: 'model_text', part: 1, text: 'It rains.' },
          {
            ...{ type: 'model_finished', stopReason: 'end' },
            parts: [
              {
                ...{ type: 'provider', part: 0, kind: 'web_search_tool_result', opaque },
                sources: [{ url: 'https://a.example/', title: 'A' }],
              },
              {
                ...{ type: 'text', part: 1, text: 'It rains.' },
                citations: [{ title: 'Report', fileId: 'file_1', pages, quote: 'Rain\n\u001b[8mis near' }],
              },
            ],
          },
        ),
    }
    const { runId } = await shop.start(defineAgent({ name: 'citing', instructions: '', model: citing }))
    const { stdout } = await tallystickHere('show', shop.ledgerPath, runId)
    expect(stdout).toMatch(/\[test: web_search_tool_result\]\n +\[1\] A, https:\/\/a\.example\/\n/)
    expect(stdout).toMatch(/ {4}It rains\.\n {4}\[1\] Report, file_1, pages 3 to 4 “Rain .*\[8mis near”\n/)
    expect(stdout).not.toContain('\u001b[8m')
  })

  it('tells turns that do the same as one, with the argument that varies', async () => {
    await using shop = await openShop()
    const { runId } = await shop.start(seeker())
    const { stdout } = await tallystickHere('show', shop.ledgerPath, runId)
    const varying = 'query: "order 0", "order 1", "order 2", "order 3", "order 4", … 15 more'
    expect(stdout).toMatch(/^calls {4}search_orders × 22; 1 skipped, 21 empty; /m)
    expect(stdout).toContain(`turns 2-${turnsAlike + 1} (turn ${turnsAlike + 1}, events `)
    expect(stdout).toContain(
      `    search_orders × ${turnsAlike}; all empty; ${varying}\n    result each time: []\n`,
    )
    const whole = await tallystickHere('show', shop.ledgerPath, runId, '--whole')
    expect(whole.stdout.match(/└ result {2}search_orders/g)).toHaveLength(turnsAlike + 1)
  })

  it('shows one turn, or one event whole', async () => {
    await using shop = await openShop()
    const { runId } = await shop.start(seeker())
    const [ledger, words] = [shop.ledgerPath, ['show', shop.ledgerPath, runId]]
    const turn = (await tallystickHere(...words, '--turn', '3')).stdout
    expect(turn).toContain('"query":"order 1"')
    expect(turn).not.toContain('"query":"order 2"')
    const events = (await tallystickHere(...words, '--turn', '3', '--events')).stdout
    expect(events).toMatch(/turn 3 +assistant_message_finished .*took [\d.]+ m?s/)
    expect(events).not.toContain('turn 4')
    expect(await tallystickHere(...words, '--turn', '99')).toMatchObject({
      code: 5,
      stderr: expect.stringContaining('no turn 99'),
    })
    const one = (await tallystickHere(...words, '--event', '2')).stdout
    expect(one).toMatch(/^event 2, \S+Z: input_received Buy tea\.\n\{\n {2}"at": \d+,\n/)
    const raw = (await tallystickHere(...words, '--event', '2', '--json')).stdout
    expect(json(raw)).toMatchObject({ runId, seq: 2, type: 'input_received' })
    expect(raw.trimEnd()).not.toContain('\n')
    expect(await tallystickHere('show', ledger, runId, '--event', '9999')).toMatchObject({ code: 5 })
    const data = json((await tallystickHere(...words, '--turn', '1', '--json')).stdout)
    expect(data).toMatchObject({
      story: [{ kind: 'failed', withdrawn: 'The balance is 12' }, { kind: 'reply' }, { kind: 'calls' }],
    })
  })

  it('reads each event once', async () => {
    await using shop = await openShop()
    const { runId } = await shop.start(seeker(60))
    const read = { events: 0, deltas: 0 }
    const ledger = sqliteLedger(shop.ledgerPath, { readOnly: true })
    const { state, outline } = await readRun(counted(ledger, read), runId)
    expect(read.events).toBe(state.seq)
    expect(outline.results).toBeGreaterThan(30)
    expect(outline.requests).toBe(outline.results)

    const shown: RuntimeEvent[] = []
    const types = [
      ...(['model_call_started', 'assistant_message_finished'] as const),
      ...(['tool_requests_collected', 'tool_result'] as const),
    ]
    await readRun(ledger, runId, undefined, { types, turn: 7, onEvent: (event) => void shown.push(event) })
    await ledger.close()
    expect(shown.map(({ seq }) => seq)).toEqual(shown.map(({ seq }) => seq).toSorted((a, b) => a - b))
    const turnsOf = (type: RuntimeEvent['type']): readonly number[] =>
      shown.filter((event) => event.type === type).map(({ turn }) => turn)
    expect(turnsOf('model_call_started')).toEqual([7])
    expect(turnsOf('assistant_message_finished')).toEqual([7])
    expect(turnsOf('tool_requests_collected')).toEqual([7])
    expect(turnsOf('tool_result')).toEqual([7])
  })

  it('reads no event twice that the fold comes by after a snapshot', async () => {
    await using shop = await openShop()
    const { runId } = await shop.start(seeker(60))
    const writable = sqliteLedger(shop.ledgerPath)
    const maxSeq = (await writable.head(runId))?.seq ?? 0
    const snapshotSeq = Math.floor(maxSeq / 2)
    await foldTo(writable, runId, snapshotSeq)
    await writable.close()
    const ledger = sqliteLedger(shop.ledgerPath, { readOnly: true })
    expect(await countEventsToFold(ledger, runId, maxSeq)).toBe(maxSeq - snapshotSeq)
    const seen: RuntimeEvent[] = []
    const types = ['tool_request_ready', 'tool_result'] as const
    await readRun(ledger, runId, undefined, { types, onEvent: (event) => void seen.push(event) })
    const wanted: readonly string[] = types
    const all = (await Array.fromAsync(ledger.read(runId))).filter(({ type }) => wanted.includes(type))
    expect(seen).toEqual(all)
    const found: number[] = []
    const find = ledger.find.bind(ledger)
    async function* finding(query?: object): AsyncGenerator<RuntimeEvent> {
      for await (const event of find(query)) {
        found.push(event.seq)
        yield event
      }
    }
    await readRun(Object.assign(ledger, { find: finding }), runId, undefined, { types })
    await ledger.close()
    // The first event after the snapshot tells that there are no more before it.
    expect(found.filter((seq) => seq > snapshotSeq).length).toBeLessThanOrEqual(1)
  })

  it('is paged on a terminal', async () => {
    await using shop = await openShop()
    const { runId } = await shop.start(seeker())
    using command = atTerminal({ rows: 10, pager: 'tr N n' }, 'show', shop.ledgerPath, runId)
    await command.shows('no such order.')
    expect(await command.ended).toBe(0)
  })
})

/** The same ledger, which counts what is read of its runs from now on. */
function counted(ledger: Ledger, read: { events: number; deltas: number }): Ledger {
  const [readRunOf, find] = [ledger.read.bind(ledger), ledger.find.bind(ledger)]
  async function* counting(events: ReturnType<Ledger['read']>): AsyncGenerator<RuntimeEvent> {
    for await (const event of events) {
      read.events++
      if (event.type.endsWith('_delta')) read.deltas++
      yield event
    }
  }
  return Object.assign(ledger, {
    read: (runId: RunId, range?: object) => counting(readRunOf(runId, range)),
    find: (query?: object) => counting(find(query)),
  })
}
