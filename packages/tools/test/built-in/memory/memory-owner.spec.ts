// Whose memories a run uses: the ledger says so, by the start of the run or of those that its session comes from.
import type { Ledger, RunId } from '@tallystick/core'
import { sampleRunId } from '@tallystick/testkit'
import type { EventOf, ParentRef } from '@tallystick/core/vocabulary'
import { describe, expect, it } from 'vitest'
import { readRecordedOwner } from '../../../src/built-in/memory/memory-store.ts'

type Start = Partial<Pick<EventOf<'run_started'>, 'sessionId' | 'subject' | 'parent'>>

/** A ledger with the starts of runs 0, 1, 2 …, and nothing else. */
function startsOf(starts: readonly Start[]): Pick<Ledger, 'read'> {
  return {
    async *read(runId: RunId) {
      const start = starts[starts.findIndex((_, index) => sampleRunId(index) === runId)]
      if (start) yield { type: 'run_started', runId, seq: 1, ...start } as EventOf<'run_started'>
    },
  }
}

const childOf = (ordinal: number): { readonly parent: ParentRef } => ({
  parent: { runId: sampleRunId(ordinal), seq: 1, relation: 'child' },
})

/** Run 0 is a child of run 1, that one of run 2, and so on; the last of them has the session. */
const familyOf = (parents: number): readonly Start[] => [
  ...Array.from({ length: parents }, (_, index) => childOf(index + 1)),
  { sessionId: 'chat' },
]

const ownerIn = async (starts: readonly Start[], per: 'subject' | 'session') =>
  await readRecordedOwner(startsOf(starts), sampleRunId(0), per)

describe('the owner of memories', () => {
  it('is the subject of the run, or its session with the subject', async () => {
    const start = { subject: 'ann', sessionId: 'chat' }
    expect(await ownerIn([start], 'subject')).toEqual({ owner: 'subject:ann', subject: 'ann' })
    expect(await ownerIn([start], 'session')).toEqual({ owner: 'session:chat', subject: 'ann' })
    expect(await ownerIn([{ sessionId: 'chat' }], 'session')).toEqual({ owner: 'session:chat' })
  })

  it('is in a child run the session of its parent, with the subject of the child run', async () => {
    const starts = [
      { ...childOf(1), subject: 'ann' },
      { sessionId: 'chat', subject: 'bob' },
    ]
    expect(await ownerIn(starts, 'session')).toEqual({ owner: 'session:chat', subject: 'ann' })
    const own = [{ ...childOf(1), sessionId: 'own' }, { sessionId: 'chat' }]
    expect(await ownerIn(own, 'session')).toEqual({ owner: 'session:own' })
  })

  it('is looked for over fifty links, and not over more', async () => {
    expect(await ownerIn(familyOf(50), 'session')).toEqual({ owner: 'session:chat' })
    await expect(ownerIn(familyOf(51), 'session')).rejects.toThrow('this run has no session')
  })

  it.each<[string, readonly Start[]]>([
    ['is not on record', []],
    ['has none', [{}]],
    ['has a parent that is not on record', [childOf(1)]],
    ['is its own parent', [childOf(0)]],
  ])('is not known where the run %s', async (_what, starts) => {
    for (const [per, option] of [
      ['subject', 'subject'],
      ['session', 'sessionId'],
    ] as const)
      await expect(ownerIn(starts, per)).rejects.toThrow(
        `Nothing can be remembered here: this run has no ${per}. The application has to start it with ${option}.`,
      )
  })
})
