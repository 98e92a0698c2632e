import { expect, it } from 'vitest'
import { checkLaws } from '@tallystick/core/testing'
import { play, type Program } from './program.ts'

const plain: Program = {
  ...{ steps: [], limits: {}, compaction: undefined, guardrails: [], structured: false },
  ...{ crashes: [], cancelAtSeq: undefined, inputs: [], decisions: [], randomness: 0 },
}

function asking(calls: readonly [tool: string, behaviour: string][]): Program['steps'][number] {
  return {
    ...{ text: '', reasoning: '', stopReason: undefined, failures: [] },
    calls: calls.map(
      ([tool, behaviour]) => ({ tool, behaviour }) as Program['steps'][number]['calls'][number],
    ),
  }
}

it.each(Array.from({ length: 30 }, (_, append) => append + 1))(
  'a child that waited, was answered and died at append %i is taken over with its parent',
  async (append) => {
    const { events, others, result } = await play({
      ...plain,
      steps: [asking([['helper', 'hang']])],
      crashes: [{ append, stored: true }],
    })
    expect(result.status).toBe('done')
    expect(others.map((child) => child.at(-1)?.type)).toEqual(['run_finished'])
    expect([events, ...others].flatMap(checkLaws)).toEqual([])
  },
)

it.each(Array.from({ length: 12 }, (_, at) => at + 8))(
  'a cancel at event %i, just before a crash, leaves no child under way',
  async (cancelAtSeq) => {
    for (let append = 3; append < 20; append++) {
      const { events, others, result } = await play({
        ...plain,
        steps: [asking([['helper', 'succeed']])],
        crashes: [{ append, stored: append % 2 === 0 }],
        cancelAtSeq,
      })
      expect(result.status).toBe('done')
      for (const child of others) expect(child.at(-1)?.type).toBe('run_finished')
      expect([events, ...others].flatMap(checkLaws)).toEqual([])
    }
  },
)
