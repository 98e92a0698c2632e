import type { RunId, RuntimeEvent } from '@tallystick/core'
import { beforeAll, describe, expect, it } from 'vitest'
import type { Acknowledged } from './support/crash-acknowledged.ts'
import type { Evidence, Holdings } from './support/crash-evidence.ts'
import { judge, lostWithTheServer } from './support/crash-judge.ts'
import { clear, evidenceOf, siteOf, takeOver } from './support/crash-site.ts'
import { doubleStarts, repetitions } from './support/crash-world-judge.ts'

/** What a run that was not cut off looks like from outside. */
async function evidenceIn(scenario: string): Promise<Evidence> {
  const site = siteOf('sqlite', scenario)
  const { before, strays, faults } = await takeOver(site)
  expect(faults).toEqual([])
  const evidence = await evidenceOf(site, { before, strays })
  clear(site)
  return evidence
}

/** The same with other events in its one run. */
function withEvents(
  evidence: Evidence,
  change: (events: readonly RuntimeEvent[]) => readonly RuntimeEvent[],
): Evidence {
  const events = new Map([...evidence.after.events].map(([runId, run]) => [runId, change(run)]))
  return { ...evidence, after: { ...evidence.after, events } }
}

function withDeeds(evidence: Evidence, change: (deeds: Evidence['deeds']) => Evidence['deeds']): Evidence {
  return { ...evidence, deeds: change(evidence.deeds) }
}

/** As if the last process that took over had found a part of what there is. */
function takenOverAt(evidence: Evidence, seq: number, waiting: Holdings['inboxes'] = new Map()): Evidence {
  const events = new Map([...evidence.after.events].map(([runId, run]) => [runId, run.slice(0, seq)]))
  return { ...evidence, before: { ...evidence.after, events, inboxes: waiting } }
}

const runIdOf = ({ after }: Evidence): RunId => [...after.events.keys()][0] as RunId
const indexOf = (events: readonly RuntimeEvent[], type: RuntimeEvent['type']): number =>
  events.findIndex((event) => event.type === type)

/** What an attacker might do to a record, and what the judge has to say about it. */
const doctorings: readonly (readonly [string, (evidence: Evidence) => Evidence, RegExp])[] = [
  [
    'an acknowledged event is gone',
    (found) => withEvents(found, (events) => events.slice(0, -1)),
    /were acknowledged \(barrier\) and are not there/,
  ],
  [
    'an acknowledged event is another',
    (found) => withEvents(found, (events) => events.map((event) => ({ ...event, at: event.at + 1 }))),
    /events 1 to \d+ were acknowledged/,
  ],
  [
    'an acknowledged take-over is undone',
    (found) => ({
      ...found,
      acknowledged: [...found.acknowledged, { kind: 'acquire', runId: runIdOf(found), seq: 99, epoch: 2 }],
    }),
    /is at epoch 1, and 2 was acknowledged/,
  ],
  [
    'an event of the writer before stands after a take-over',
    (found) => ({
      ...found,
      after: { ...found.after, epochs: new Map([[runIdOf(found), 2]]) },
      acknowledged: [...found.acknowledged, { kind: 'acquire', runId: runIdOf(found), seq: 9, epoch: 2 }],
    }),
    /holds event 10 of a writer that was relieved at 9/,
  ],
  [
    'the past is another than whoever took over has read',
    (found) => {
      const taken = takenOverAt(found, 5)
      const [runId] = [runIdOf(found)]
      const past = (taken.before.events.get(runId) ?? []).map((event) => ({ ...event, at: 1 }))
      return { ...taken, before: { ...taken.before, events: new Map([[runId, past]]) } }
    },
    /has another past/,
  ],
  [
    'a tool that declares nothing was started twice',
    (found) => withDeeds(found, (deeds) => [...deeds, ...deeds.filter(({ name }) => name === 'ship')]),
    /were started again 1 times/,
  ],
  [
    'a tool has begun whose start is not on record',
    (found) =>
      withDeeds(found, (deeds) => deeds.map((deed) => ({ ...deed, ...(deed.attempt && { attempt: 2 }) }))),
    /has begun without that its start 2 is on record/,
  ],
  [
    'what was done is on record as never run',
    (found) =>
      withEvents(found, (events) =>
        events.map((event) => (event.type === 'tool_result' ? { ...event, outcome: 'denied' } : event)),
      ),
    /was done, and is on record as denied/,
  ],
  [
    'a success is on record that never happened',
    (found) => withDeeds(found, (deeds) => deeds.filter(({ what }) => what !== 'done')),
    /is a success on record, and was never done/,
  ],
  [
    'a model was asked without a word about it',
    (found) => withDeeds(found, (deeds) => [...deeds, { what: 'asked', name: 'scripted-1' }]),
    /scripted-1 was asked 4 times, and 3 are on record/,
  ],
  [
    'two starts of a call have different keys',
    (found) =>
      withDeeds(found, (deeds) =>
        deeds.map((deed) => (deed.what === 'done' && deed.key ? { ...deed, key: 'other' } : deed)),
      ),
    /are not each other's/,
  ],
  ['the run has not ended', (found) => withEvents(found, (events) => events.slice(0, -1)), /has not ended/],
  [
    'the run has another answer',
    (found) => ({
      ...found,
      scenario: { ...found.scenario, ends: { '': [{ reason: 'answered', text: /No/ }] } },
    }),
    /should end as answered with \/No\//,
  ],
  [
    'the run was begun twice',
    (found) => {
      const runs = [runIdOf(found), runIdOf(found)]
      return { ...found, after: { ...found.after, sessions: { '': runs } } }
    },
    /session "" has 2 runs/,
  ],
  [
    'a call has no result',
    (found) =>
      withEvents(found, (events) => events.filter((_, index) => index !== indexOf(events, 'tool_result'))),
    /has 0 results/,
  ],
  [
    'events do not follow each other by the laws',
    (found) => withEvents(found, (events) => events.filter(({ type }) => type !== 'tool_requests_collected')),
    /IllegalTransitionError|breaks law 4/,
  ],
  [
    'verifying finds damage',
    (found) => ({
      ...found,
      verdicts: [{ scope: 'run', runId: runIdOf(found), ok: false, events: 0 }],
    }),
    /verify finds/,
  ],
  [
    'an error belonged to nobody',
    (found) => ({ ...found, strays: ['Error: lost'] }),
    /belonged to nobody: Error: lost/,
  ],
]

describe('the judge of crashes', () => {
  let sound: Evidence
  beforeAll(async () => {
    sound = await evidenceIn('writes')
  })

  it('finds nothing in a run that was not cut off, whenever it was taken over', () => {
    expect(judge(sound)).toEqual([])
    for (let seq = 0; seq <= (sound.after.events.get(runIdOf(sound)) ?? []).length; seq++) {
      expect(judge(takenOverAt(sound, seq))).toEqual([])
    }
    expect([doubleStarts(sound), repetitions(sound)]).toEqual([0, 0])
  })

  it.each(doctorings)('notices where %s', (_what, doctor, said) => {
    expect(judge(doctor(sound)).join('\n')).toMatch(said)
  })

  it('counts starts again by what their tools say of it', () => {
    const again = withDeeds(sound, (deeds) => [...deeds, ...deeds.filter(({ what }) => what === 'begun')])
    const names = sound.deeds.filter(({ what }) => what === 'begun').map(({ name }) => name)
    expect(names.toSorted()).toEqual(['look', 'pay', 'pay', 'ship'])
    expect([doubleStarts(again), repetitions(again)]).toEqual([3, 1])
  })

  it('notices a command that was acknowledged and is not on record, and one that was never decided', async () => {
    const steered = await evidenceIn('steer')
    expect(judge(steered)).toEqual([])
    const silent = withEvents(steered, (events) =>
      events.filter((event) => event.type !== 'input_received' || event.delivery === 'start'),
    )
    expect(judge(silent).join('\n')).toMatch(/was said under \S+ in run \S+ is on record 0 times/)
    const put = steered.acknowledged.find((each) => each.kind === 'put') as Extract<
      Acknowledged,
      { readonly kind: 'put' }
    >
    const entry = { key: put.key, command: { type: 'cancel' } as const, at: 1 }
    const inboxes = new Map([[runIdOf(steered), [entry]]])
    const later = withEvents(takenOverAt(steered, 9, inboxes), (events) =>
      events.map((event, index) => (index < 9 ? event : { ...event, epoch: 2 })),
    )
    const left = { ...later, after: { ...later.after, inboxes } }
    expect(judge(left).join('\n')).toMatch(/waited in run \S+, and nobody has decided about it/)
  })

  it('lets a server that died take along the starts of reads that may run again, and no process', () => {
    const isOf = (name: string) => (event: RuntimeEvent) =>
      (event.type === 'tool_started' || event.type === 'tool_result') && event.name === name
    const without = (name: string, acknowledged: readonly Acknowledged[]): readonly string[] => {
      const found = withEvents(sound, (events) => events.filter((event) => !isOf(name)(event)))
      return judge({ ...found, acknowledged }).filter((fault) => fault.includes('without that its start'))
    }
    expect(without('look', [{ kind: 'death' }])).toEqual([])
    expect(without('look', [])).toHaveLength(2)
    expect(without('ship', [{ kind: 'death' }])).toHaveLength(2)
  })

  it('lets a server that died take along what was lazy and had no barrier after it, and nothing else', () => {
    const runId = runIdOf(sound)
    const lazy = (seq: number, behind: number): Acknowledged => ({
      ...{ kind: 'append', runId, durability: 'lazy', seq, events: 1, digest: 'of what is gone', behind },
    })
    const barrier = sound.acknowledged.find((each) => each.kind === 'append') as Acknowledged
    const dying = (acknowledged: readonly Acknowledged[]): Evidence => ({ ...sound, acknowledged })
    const free = dying([barrier, lazy(9, 1), { kind: 'death' }])
    expect(judge(free)).toEqual([])
    expect(lostWithTheServer(free)).toBe(1)
    const hardened = dying([
      barrier,
      lazy(9, 1),
      { ...barrier, behind: 2 } as Acknowledged,
      { kind: 'death' },
    ])
    expect(judge(hardened).join('\n')).toMatch(/events 9 to 9 were acknowledged \(lazy\)/)
    expect(judge(dying([{ kind: 'death' }, lazy(9, 1)])).join('\n')).toMatch(/events 9 to 9/)
  })
})
