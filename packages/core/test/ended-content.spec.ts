// Whose contents go when a run ends, in a family of three: a root, its child run, and the child run of that.
import { describe, expect, it } from 'vitest'
import { defineAgent, memoryLedger, type Ledger, type RunId, type RuntimeEvent } from '@tallystick/core'
import { evolve } from '@tallystick/core/machine'
import { sampleFacts, manualClock, sampleRunId, scriptedModel, stampFacts } from '@tallystick/testkit'
import type { ContentRemoval, EventQuery } from '../src/ledger/ledger.ts'
import { removeEndedContent, requireRemovable } from '../src/runtime/ended-content.ts'

type Content = 'full' | 'digests'

interface Member {
  readonly parent?: RunId
  readonly relation?: 'child' | 'fork'
  readonly asks?: RunId
  /** The policy of the run. */
  readonly content?: Content
  /** The policy of its agent. */
  readonly agent?: Content
  /** The policy of its agent in the code that took it over. */
  readonly resumed?: Content
  /** The policy of the agent that took over its conversation. */
  readonly handedTo?: Content
  readonly isOpen?: boolean
}

const [root, child, grandchild] = [1, 2, 3].map(sampleRunId) as [RunId, RunId, RunId]
const line = (each: { root?: Member; child?: Member; grandchild?: Member } = {}) =>
  new Map<RunId, Member>([
    [root, { asks: child, ...each.root }],
    [child, { parent: root, asks: grandchild, ...each.child }],
    [grandchild, { parent: child, ...each.grandchild }],
  ])

function eventsOf(runId: RunId, { parent, relation = 'child', asks, ...member }: Member) {
  const { run_started, run_resumed, agent_handed_off, tool_started, run_finished } = sampleFacts(runId)
  const {
    parent: _parent,
    recording: _recording,
    sessionId: _id,
    sessionPlace: _place,
    ...start
  } = run_started
  const { recording: _policy, ...policy } = start.definition.policy ?? { limits: {} }
  const { agent, resumed, handedTo, content, isOpen } = member
  const definitionOf = (own?: Content) => ({
    ...start.definition,
    policy: { ...policy, ...(own && { recording: { content: own } }) },
  })
  return stampFacts(runId, [
    {
      ...{ ...start, definition: definitionOf(agent) },
      ...(parent && { parent: { runId: parent, seq: 1, relation } }),
      ...(content && { recording: { content } }),
    },
    ...(resumed ? [{ ...run_resumed, definition: definitionOf(resumed) }] : []),
    ...(handedTo ? [{ ...agent_handed_off, definition: definitionOf(handedTo) }] : []),
    ...(asks ? [{ ...tool_started, child: asks }] : []),
    ...(isOpen ? [] : [run_finished]),
  ])
}

/** Ends one of these runs as a process with agents of these policies does, and tells whose contents it removes. */
async function ended(family: ReadonlyMap<RunId, Member>, runId: RunId, policies: readonly Content[] = []) {
  const records = new Map<RunId | undefined, readonly RuntimeEvent[]>(
    [...family].map(([id, member]) => [id, eventsOf(id, member)]),
  )
  const removed: [RunId, ContentRemoval][] = []
  const asked: string[] = []
  const ledger: Ledger = {
    ...memoryLedger(),
    async *find({ runId: of, types }: EventQuery) {
      asked.push(`${of === root ? 'root' : of === child ? 'child' : 'grandchild'} ${types?.length}`)
      for (const event of records.get(of) ?? []) if (types?.includes(event.type)) yield event
    },
    removeContent: async (id, why) => void removed.push([id, why]),
  }
  const agents = {
    all: () => policies.map((content) => ({ definition: { policy: { recording: { content } } } })),
  }
  const phase = family.get(runId)?.isOpen ? 'idle' : 'done'
  const state = { ...evolve(undefined, records.get(runId)![0]!), phase }
  const parts = { ledger, agents, defaults: { hooks: [] }, host: { clock: manualClock(77) } }
  await removeEndedContent(state as never, parts as never)
  return { removed, asked, names: removed.map(([id]) => id) }
}

describe('the end of a run', () => {
  it('removes its content and that of all runs below it, the lowest first, and says why', async () => {
    const { removed } = await ended(line({ root: { content: 'digests' } }), root)
    const why = { by: 'the recording policy of the run', reason: "content: 'digests'", at: 77 }
    expect(removed).toEqual([grandchild, child, root].map((runId) => [runId, why]))
  })

  it.each<readonly [string, Member, readonly Content[], readonly RunId[]]>([
    ['its agent', { agent: 'digests' }, [], [grandchild, child, root]],
    ['its agent as a resume found it', { resumed: 'digests' }, ['digests'], [grandchild, child, root]],
    ['an agent that it was handed to', { handedTo: 'digests' }, ['digests'], [grandchild, child, root]],
    [
      'any agent in it',
      { agent: 'digests', resumed: 'full', handedTo: 'full' },
      [],
      [grandchild, child, root],
    ],
    ['the run over later agents', { content: 'full', resumed: 'digests', handedTo: 'digests' }, [], []],
    ['the run over its agent', { agent: 'digests', content: 'full' }, ['digests'], []],
    ['none of its own', {}, ['digests'], []],
    ['none', { content: 'full' }, ['full'], []],
  ])('goes by the policy of %s', async (_whose, member, policies, names) => {
    expect((await ended(line({ root: member }), root, policies)).names).toEqual(names)
  })

  it('removes that of a run below it alone which has such a policy, and of those below that', async () => {
    const family = line({ child: { agent: 'digests' } })
    expect((await ended(family, root, ['digests'])).names).toEqual([grandchild, child])
  })

  it('leaves what a run that is under way needs, and the runs below that', async () => {
    const family = line({ root: { content: 'digests' }, child: { isOpen: true } })
    expect((await ended(family, root)).names).toEqual([root])
    expect((await ended(line({ root: { content: 'digests', isOpen: true } }), root)).asked).toEqual([])
  })

  it('reads nothing where no policy of the process says so', async () => {
    expect((await ended(line(), root, ['full'])).asked).toEqual([])
  })

  it('is that of a run of its own where a run was forked', async () => {
    const family = line({ child: { relation: 'fork', content: 'digests' }, root: { isOpen: true } })
    expect((await ended(family, child)).names).toEqual([grandchild, child])
  })
})

describe('the end of a child run', () => {
  it('removes nothing while a run above it is under way, and reads one event of that', async () => {
    const open = { content: 'digests', isOpen: true } as const
    expect(await ended(line({ child: open }), grandchild)).toMatchObject({ names: [], asked: ['child 1'] })
    expect((await ended(line({ root: open, child: { content: 'digests' } }), grandchild)).names).toEqual([])
  })

  it.each<readonly [string, Parameters<typeof line>[0]]>([
    ['its parent', { child: { content: 'digests' } }],
    ['the parent of that', { root: { agent: 'digests' } }],
    ['its own agent', { grandchild: { agent: 'digests' } }],
  ])('removes its content once all of those have ended, by the policy of %s', async (_whose, members) => {
    expect((await ended(line(members), grandchild)).names).toEqual([grandchild])
  })

  it('removes that of the runs below it, too', async () => {
    expect((await ended(line({ root: { content: 'digests' } }), child)).names).toEqual([grandchild, child])
  })

  it('removes nothing where no policy says so', async () => {
    expect((await ended(line(), grandchild)).names).toEqual([])
  })

  it('ends at a run that was forked: what that one was forked from has no say', async () => {
    const family = line({ root: { content: 'digests', isOpen: true }, child: { relation: 'fork' } })
    expect((await ended(family, grandchild)).names).toEqual([])
    const due = line({ root: { isOpen: true }, child: { relation: 'fork', content: 'digests' } })
    expect((await ended(due, grandchild)).names).toEqual([grandchild])
  })
})

describe('a run of which digests alone are to stay', () => {
  const agent = (content?: Content) =>
    defineAgent({
      ...{ name: 'desk', instructions: 'Help.', model: scriptedModel([]) },
      ...(content && { recording: { content } }),
    })
  const message =
    "The recording policy of a run of agent desk says content: 'digests', and its ledger cannot remove content. Use sqliteLedger or postgresLedger, or leave content out."

  it('is refused where its ledger cannot remove content', () => {
    const ledger = memoryLedger()
    expect(() => requireRemovable(agent('digests'), undefined, ledger)).toThrow(message)
    expect(() => requireRemovable(agent(), { content: 'digests' }, ledger)).toThrow(message)
    expect(() => requireRemovable(agent('full'), { toolProgress: false }, ledger)).not.toThrow()
    const removing: Ledger = { ...ledger, removeContent: async () => {} }
    expect(() => requireRemovable(agent('digests'), undefined, removing)).not.toThrow()
  })
})
