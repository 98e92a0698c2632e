import { describe, expect, it } from 'vitest'
import { joinText } from '@tallystick/core'
import type { AssistantPart } from '@tallystick/core/vocabulary'
import { collectCitations } from '../src/events/content.ts'

describe('the text of parts', () => {
  it('is that of the text parts, put together', () => {
    const parts = [
      { type: 'text', text: 'It is ' },
      { type: 'reasoning', text: 'Hm.' },
      { type: 'text' },
      { type: 'image' },
      { type: 'text', text: 'warm.' },
    ]
    expect(joinText(parts)).toBe('It is warm.')
    expect(joinText([])).toBe('')
  })

  it('has the citations of its parts, in their order', () => {
    const [one, two, three] = ['a', 'b', 'c'].map((title) => ({ title }))
    const parts: readonly AssistantPart[] = [
      { type: 'text', text: 'It is ', citations: [one!, two!] },
      { type: 'reasoning', text: 'Hm.' },
      { type: 'text', text: 'warm' },
      { type: 'text', text: '.', citations: [three!] },
    ]
    expect(collectCitations(parts)).toEqual([one, two, three])
    expect(collectCitations([])).toEqual([])
  })
})
