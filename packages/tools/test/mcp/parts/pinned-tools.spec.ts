// Which tools a person knows, and what a server that is believed says of them.
import { describe, expect, it } from 'vitest'
import type { ListedTool } from '../../../src/mcp/listing.ts'
import { readEffect, createPins } from '../../../src/mcp/mcp-tools.ts'

const tool = (exposedName: string, digest: string) => ({ exposedName, digest }) as ListedTool

describe('the tools that a person knows', () => {
  it('are those that were given, or listed first', () => {
    const pins = createPins({ b: '1' })
    for (const each of [tool('a', '1'), tool('a', '2'), tool('b', '2')]) pins.see(each)
    expect(pins.all()).toEqual({ a: '1', b: '1' })
    expect(Object.keys(pins.all())).toEqual(['a', 'b'])
    expect(
      [tool('a', '1'), tool('a', '2'), tool('b', '2'), tool('c', '1')].map((each) => pins.hasChanged(each)),
    ).toEqual([...[false, true, true, false]])
    pins.accept(tool('b', '2'))
    expect(pins.hasChanged(tool('b', '2'))).toBe(false)
    expect(pins.hasChanged(tool('b', '1'))).toBe(true)
  })
})

describe('a tool of a server', () => {
  it.each([
    [{ readOnlyHint: true, idempotentHint: true }, false, 'write', 'report'],
    [{ readOnlyHint: true }, true, 'read', 'rerun'],
    [{ readOnlyHint: false, idempotentHint: true }, true, 'write', 'rerun'],
    [{ idempotentHint: false }, true, 'write', 'report'],
    [{}, true, 'write', 'report'],
  ])('with %j, believed: %s', (annotations, isTrusted, effect, recovery) => {
    expect(readEffect(annotations, isTrusted)).toEqual({ effect, recovery })
  })
})
