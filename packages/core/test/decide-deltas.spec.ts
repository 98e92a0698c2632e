import { describe, expect, it } from 'vitest'
import type { RunState } from '@tallystick/core'
import { given } from '@tallystick/core/testing'
import type { Signal } from '@tallystick/core/vocabulary'
import { decideDeltas } from '../src/machine/decide/decide-deltas.ts'
import { begun, called } from './pages.ts'

const streaming = given([...begun(), called()]).state as RunState
const delta = (text: string, more: object = {}): Signal => ({
  ...{ type: 'model_text', turn: 1, attempt: 1, part: 0, text },
  ...more,
})

const textsOf = (messages: readonly Signal[], place = 0): readonly string[] =>
  decideDeltas(streaming, messages, place)?.texts ?? []

describe('neighbouring deltas of one part', () => {
  it('are recorded together, up to the first of another part', () => {
    for (const end of [{ part: 1 }, { type: 'model_reasoning' }, { turn: 2 }, { attempt: 2 }]) {
      expect(textsOf([delta('a'), delta('b'), delta('c', end), delta('d')])).toEqual(['a', 'b'])
    }
    expect(textsOf([delta('a'), delta('b'), delta('c')], 1)).toEqual(['b', 'c'])
  })

  it.each([
    ['another turn', delta('a', { turn: 2 })],
    ['another attempt', delta('a', { attempt: 2 })],
    ['no text', delta('')],
    ['a text that takes the place of what came before', delta('a', { replaces: true })],
  ])('are left to be decided alone where the first is of %s', (_what, first) => {
    expect(textsOf([first, delta('b')])).toEqual([])
  })
})
