import * as fc from 'fast-check'
import '../../../scripts/testing/seed.ts'
import { describe, expect, it } from 'vitest'
import { fitIdentifier, createToolNames } from '../src/shared/request.ts'
import { anyText } from '../../../scripts/testing/any-text.ts'

const anyName = fc.oneof(
  anyText({ maxLength: 90 }),
  fc.stringMatching(/^[a-z./ _-]{1,70}$/),
  fc.constantFrom(
    'get_weather',
    'get.weather',
    'get weather',
    'get/weather',
    'web_search',
    '',
    '工具',
    'a'.repeat(200),
  ),
)

describe('tool names on the wire', () => {
  it('fit, are all different, and lead back to the tool', () => {
    fc.assert(
      fc.property(fc.uniqueArray(anyName), fc.subarray(['web_search', 'get_weather']), (names, reserved) => {
        const map = createToolNames(names, { maxLength: 64, reserved })
        const wireNames = names.map(map.toWire)
        for (const wireName of wireNames) expect(wireName).toMatch(/^[a-zA-Z0-9_-]{1,64}$/)
        expect(new Set(wireNames).size).toBe(names.length)
        expect(wireNames.map(map.fromWire)).toEqual(names)
        expect(wireNames.some((wireName) => reserved.includes(wireName))).toBe(false)
      }),
    )
  })

  it('do not depend on the order in which the tools are given', () => {
    fc.assert(
      fc.property(fc.uniqueArray(anyName), (names) => {
        const map = createToolNames(names, { maxLength: 64 })
        const reversed = createToolNames([...names].reverse(), { maxLength: 64 })
        expect(names.map(reversed.toWire)).toEqual(names.map(map.toWire))
      }),
    )
  })

  it('stay apart even where a tool is called what another one would become', () => {
    const mangled = fitIdentifier('get.weather', 64, 0)
    const map = createToolNames(['get.weather', mangled], { maxLength: 64 })
    expect(map.toWire(mangled)).toBe(mangled)
    expect(map.toWire('get.weather')).toBe(fitIdentifier('get.weather', 64, 1))
    expect(map.fromWire(map.toWire('get.weather'))).toBe('get.weather')
  })

  it('stay apart, in any order, where their hashes meet', () => {
    const meeting = ['read+*@&~', 'read#~+;,']
    expect(new Set(meeting.map((name) => fitIdentifier(name, 64, 0))).size).toBe(1)
    const [one, other] = [meeting, meeting.toReversed()].map((names) =>
      createToolNames(names, { maxLength: 64 }),
    )
    expect(new Set(meeting.map((name) => one!.toWire(name))).size).toBe(2)
    expect(meeting.map((name) => other!.toWire(name))).toEqual(meeting.map((name) => one!.toWire(name)))
  })

  it('change only where they must, and stay readable', () => {
    const map = createToolNames(['get_weather', 'files/read'], { maxLength: 64 })
    expect(map.toWire('get_weather')).toBe('get_weather')
    expect(map.toWire('files/read')).toMatch(/^files_read_[0-9a-f]{8}$/)
    expect(map.fromWire('never_offered')).toBe('never_offered')
  })
})
