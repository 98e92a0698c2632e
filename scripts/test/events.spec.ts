import { readFileSync } from 'node:fs'
import { eventTypes } from '@tallystick/core/vocabulary'
import { describe, expect, it } from 'vitest'
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
