import { readFileSync } from 'node:fs'
import { eventTypes } from '@tallystick/core/vocabulary'
import { describe, expect, it } from 'vitest'
import { declarationsIn } from '../events/declarations.ts'
import { eventsPage } from '../events/page.ts'

const page = readFileSync(new URL('../../docs/events.md', import.meta.url), 'utf8')

describe('docs/events.md', () => {
  it('is what the code says: after a change of an event, run `pnpm docs:events`', () => {
    expect(page).toBe(eventsPage())
  })

  it.each(eventTypes)('has a section for %s, with what it says', (type) => {
    expect(page).toMatch(new RegExp(`^### ${type}\\n\\n[A-Z].*\\. Legal: .+\\.$`, 'm'))
  })

  it('tells optional fields, types and meanings of what an event holds', () => {
    expect(page).toMatch(/^\| `costUsd` +\| `number`, optional +\| US dollars for this attempt so far/m)
    expect(page).toMatch(/^\| `reason` +\| \[`FinishReason`\]\(#finishreason\) +\|/m)
  })
})

describe('declarationsIn', () => {
  it('reads fields, words, docstrings and the types that they name', () => {
    const source = [
      '/** Why. */',
      "export const reasons = ['a', 'b'] as const",
      'export type Reason = (typeof reasons)[number]',
      '/** A thing. */',
      'export interface Thing extends Base {',
      '  /** Its reasons. */',
      '  readonly reasons?: readonly Reason[]',
      '  readonly at: { readonly from: number }',
      '}',
    ].join('\n')
    expect(declarationsIn(source)).toEqual([
      { name: 'Reason', doc: 'Why.', words: ['a', 'b'], refers: [] },
      {
        name: 'Thing',
        doc: 'A thing.',
        type: 'Base',
        refers: ['Base', 'Reason'],
        fields: [
          { name: 'reasons', type: 'Reason[]', optional: true, doc: 'Its reasons.', refers: ['Reason'] },
          {
            name: 'at',
            type: '{ from: number }',
            optional: false,
            doc: '',
            refers: [],
            fields: [{ name: 'from', type: 'number', optional: false, doc: '', refers: [] }],
          },
        ],
      },
    ])
  })
})
