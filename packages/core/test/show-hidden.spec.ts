import { expect, it } from 'vitest'
import { showHidden } from '../src/values/text.ts'

it.each([
  ['a\u202Eb', 'a⟨U+202E⟩b', 'turns what follows around'],
  ['a\u3164b', 'a⟨U+3164⟩b', 'looks like nothing'],
  ['a\uD800b', 'a⟨U+D800⟩b', 'is half a character'],
  ['a\u0007b', 'a⟨U+0007⟩b', 'is obeyed by a terminal'],
  ['a\u{E0041}b', 'a⟨U+E0041⟩b', 'carries a message of its own'],
])('shows what a reader cannot see: %j as %s, which %s', (text, shown) => {
  expect(showHidden(text)).toBe(shown)
})

it('leaves lines, tabs, emoji and other scripts alone', () => {
  for (const text of ['a\n\tb', '❤\uFE0F', '日本語\u3000です', 'naïve café'])
    expect(showHidden(text)).toBe(text)
})

it('shows what only looks like a space, where that is asked for', () => {
  expect(showHidden('pay\u00A0100 now', { spaces: true })).toBe('pay⟨U+00A0⟩100 now')
})
