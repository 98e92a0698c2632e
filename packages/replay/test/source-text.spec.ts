import { hostileTexts } from '@tallystick/testkit'
import { ConfigurationError } from '@tallystick/core'
import { describe, expect, it } from 'vitest'
import { toComment, requireIdentifier, toStringLiteral } from '../src/regression.ts'

/** What code comes to that is run as a function. */
function run(code: string): unknown {
  // oxlint-disable-next-line no-implied-eval, typescript/no-implied-eval -- generated code is tried as code
  return (new Function(code) as () => unknown)()
}

describe('text in generated source code', () => {
  it('is a string literal that comes to the text, and runs nothing of it', () => {
    for (const { name, text } of hostileTexts) {
      expect({ name, text: run(`return ${toStringLiteral(text)}`) }).toEqual({ name, text })
    }
    expect(globalThis).not.toHaveProperty('tallystickRan')
  })

  it('stays in a line comment', () => {
    for (const { name, text } of hostileTexts) {
      expect({ name, ran: run(`// ${toComment(text)}\nreturn 'what follows'`) }).toEqual({
        ...{ name, ran: 'what follows' },
      })
    }
    expect(globalThis).not.toHaveProperty('tallystickRan')
  })

  it('shows a reviewer everything: no control, direction mark or invisible character is left', () => {
    for (const { text } of hostileTexts) {
      expect(toStringLiteral(text)).not.toMatch(/[\p{C}\p{Zl}\p{Zp}]/u)
      expect(toComment(text)).not.toMatch(/[\p{C}\p{Zl}\p{Zp}]/u)
    }
    expect(toStringLiteral("It's 21 °C in 서울.")).toBe(String.raw`'It\'s 21 °C in 서울.'`)
  })

  it('is imported only under a name that is an identifier', () => {
    expect(requireIdentifier('agents_2')).toBe('agents_2')
    for (const { text } of hostileTexts.filter(({ border }) => border === 'code' || border === 'shell')) {
      expect(() => requireIdentifier(text)).toThrow(ConfigurationError)
    }
  })
})
