import { createRuntime, defineAgent, memoryLedger, type RuntimeEvent } from '@tallystick/core'
import { everyFact, manualClock, sampleRunId, scriptedModel, stamped } from '@tallystick/core/testing'
import { describe, expect, it } from 'vitest'
import { EventAudit } from '../src/verify/event-audit.ts'

const run = sampleRunId(1)
const facts = everyFact(run)
const [start] = stamped(run, [facts.run_started]) as readonly [RuntimeEvent]
const [ended, again, early] = stamped(run, [facts.run_finished, facts.run_finished, facts.tool_result], {
  afterSeq: 1,
}) as readonly [RuntimeEvent, RuntimeEvent, RuntimeEvent]

describe('the audit of the events of a run', () => {
  it('says nothing of a sound event, and knows the run after it', () => {
    const audit = new EventAudit({ accumulates: true })
    expect([audit.known.state, audit.session]).toEqual([undefined, undefined])
    expect(audit.faultOf(start)).toBeUndefined()
    expect(audit.known.state?.seq).toBe(1)
    expect(audit.known.accumulated?.agents).toEqual(['assistant'])
    expect(audit.session).toEqual({ sessionId: `session of ${run}`, sessionPlace: 1 })
  })

  it('accumulates nothing where no summary is to be compared', () => {
    const audit = new EventAudit()
    expect(audit.faultOf(start)).toBeUndefined()
    expect(audit.known).toMatchObject({ state: { seq: 1 }, accumulated: undefined })
  })

  it.each<readonly [string, object, object]>([
    [
      'an id that is none',
      { parent: { runId: 'no id', seq: 1, relation: 'fork' } },
      { what: 'parent.runId', expected: 'a run id', found: '"no id"' },
    ],
    ['a field of another shape', { agent: 7 }, { what: 'agent', expected: 'as run_started has it' }],
  ])('finds %s, and goes no further', (_name, change, fault) => {
    const audit = new EventAudit()
    expect(audit.faultOf({ ...start, ...change })).toMatchObject(fault)
    expect(audit.known.state).toBeUndefined()
  })

  it('finds a fact that is stated twice, and an event that is not legal there', () => {
    const audit = new EventAudit()
    audit.faultOf(start)
    expect(audit.faultOf(early)).toMatchObject({
      what: 'law 5',
      found: expect.stringContaining('tool_result'),
    })
    audit.faultOf(ended)
    expect(audit.faultOf(again)).toMatchObject({ what: 'run_finished', expected: 'once', found: 'twice' })
  })

  describe('and several pieces of a reply', () => {
    /** Up to the first piece of a reply, and the pieces. */
    async function reply(): Promise<readonly [readonly RuntimeEvent[], readonly RuntimeEvent[]]> {
      const ledger = memoryLedger()
      const model = scriptedModel([{ text: 'one two three four five six seven eight' }])
      const agent = defineAgent({ name: 'a', instructions: '', model })
      const host = { clock: manualClock() }
      const { runId } = await createRuntime({ ledger, agents: [agent], host }).run(agent, 'Count.').result
      const events = await Array.fromAsync(ledger.read(runId))
      const pieces = events.filter(({ type }) => type === 'assistant_text_delta')
      return [events.slice(0, (pieces[0]?.seq ?? 0) - 1), pieces]
    }
    const begun = (events: readonly RuntimeEvent[]): EventAudit => {
      const audit = new EventAudit()
      expect(events.flatMap((event) => audit.faultOf(event) ?? [])).toEqual([])
      return audit
    }

    it('comes at once to what it comes to one by one', async () => {
      const [before, pieces] = await reply()
      expect(pieces.length).toBeGreaterThan(2)
      const [atOnce, oneByOne] = [begun(before), begun(before)]
      expect(atOnce.takeDeltas(pieces)).toBe(true)
      for (const piece of pieces) expect(oneByOne.faultOf(piece)).toBeUndefined()
      expect(atOnce.known).toEqual(oneByOne.known)
    })

    it.each<readonly [string, object, string]>([
      ['is earlier than the one before it', { at: 0 }, 'law 4'],
      ['is of another attempt', { attempt: 2 }, 'law 5'],
      ['is not the next one', { seq: 99 }, 'law 5'],
    ])('takes none of them where one %s, and names that', async (_name, change, what) => {
      const [before, pieces] = await reply()
      const odd = pieces.map((piece, index) => (index === 2 ? { ...piece, ...change } : piece))
      const audit = begun(before)
      const { state } = audit.known
      expect(audit.takeDeltas(odd)).toBe(false)
      expect(audit.known.state).toBe(state)
      expect(odd.slice(0, 3).map((piece) => audit.faultOf(piece)?.what)).toEqual([undefined, undefined, what])
    })

    it('takes none of a row whose last one is at no date, and names that', async () => {
      const [before, pieces] = await reply()
      const odd = pieces.map((piece, index) =>
        index === pieces.length - 1 ? { ...piece, at: Number.MAX_SAFE_INTEGER } : piece,
      )
      const audit = begun(before)
      expect(audit.takeDeltas(odd, true)).toBe(false)
      expect(odd.flatMap((piece) => audit.faultOf(piece)?.what ?? [])).toEqual(['at'])
    })

    it('takes none of them where the first has another shape', async () => {
      const [before, [first, ...others]] = (await reply()) as readonly [RuntimeEvent[], RuntimeEvent[]]
      const odd = { ...first, part: 'first' } as unknown as RuntimeEvent
      expect(begun(before).takeDeltas([odd, ...others])).toBe(false)
    })
  })
})
