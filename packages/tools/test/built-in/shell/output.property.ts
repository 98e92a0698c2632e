import { Buffer } from 'node:buffer'
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { tries } from '../../../../../scripts/testing/effort.ts'
import { keepOutput, reportOutput } from '../../../src/built-in/run-program.ts'
import { toVisibleText } from '../../../src/define/text.ts'
import { HeldTimers } from '../held-timers.ts'
import { anyText } from '../../../../../scripts/testing/any-text.ts'

const text = fc.string({ unit: fc.constantFrom('a', 'b', 'é', '😀', '…', '\n'), maxLength: 80 })

/** Bytes in pieces. */
function* piecesOf(bytes: Buffer, sizes: readonly number[]): Generator<Buffer> {
  let at = 0
  for (let index = 0; at < bytes.length; index++) {
    const size = sizes[index % sizes.length] ?? 1
    yield bytes.subarray(at, at + size)
    at += size
  }
}
const sizes = fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1, maxLength: 5 })

describe('the output that is kept', () => {
  it('is the whole, or its beginning and its end with the number of bytes between, however it came', () => {
    const holds = fc.property(text, sizes, fc.integer({ min: 1, max: 120 }), (written, pieces, maxBytes) => {
      const bytes = Buffer.from(written)
      const kept = keepOutput(maxBytes)
      for (const piece of piecesOf(bytes, pieces)) kept.write(piece)
      const shown = kept.text()
      expect([kept.written, kept.omitted]).toEqual([bytes.length, Math.max(0, bytes.length - maxBytes)])
      if (bytes.length <= maxBytes) return shown === written
      const [, head = '', cut = '', tail = ''] =
        /^(.*)\n… \((\d+) bytes are left out\) …\n(.*)$/s.exec(shown) ?? []
      expect(Buffer.byteLength(head) + Number(cut) + Buffer.byteLength(tail)).toBe(bytes.length)
      return written.startsWith(head) && written.endsWith(tail) && Buffer.byteLength(head + tail) <= maxBytes
    })
    fc.assert(holds, { numRuns: tries(2_000) })
  })

  it('can be shown shorter than it is kept', () => {
    const kept = keepOutput(1_000)
    kept.write(Buffer.from(`start${'x'.repeat(500)}end`))
    expect(kept.text(10)).toBe('start\n… (498 bytes are left out) …\nxxend')
    kept.write(Buffer.alloc(5_000, 'y'))
    expect(kept.text(10)).toBe('start\n… (5498 bytes are left out) …\nyyyyy')
  })
})

describe('progress', () => {
  it('is what was written, up to its bound, in few reports', async () => {
    const holds = fc.asyncProperty(
      text,
      sizes,
      fc.integer({ min: 1, max: 200 }),
      async (written, pieces, maxBytes) => {
        const timers = new HeldTimers()
        const reports: unknown[] = []
        const progress = reportOutput((data) => void reports.push(data), maxBytes, timers)
        for (const piece of piecesOf(Buffer.from(written), pieces)) {
          progress.write('stdout', piece)
          if (piece.includes(10) && timers.count > 0) await timers.fire(100)
        }
        progress.end()
        expect(timers.count).toBe(0)
        const texts = reports.map((report) => (report as { readonly text?: string }).text ?? '')
        const said = texts.join('')
        expect(written.startsWith(said.replace(/\ufffd$/, ''))).toBe(true)
        expect(Buffer.byteLength(written) <= maxBytes ? said : written).toBe(written)
      },
    )
    await fc.assert(holds, { numRuns: tries(600) })
  })
})

describe('the bound of progress', () => {
  it.each([
    [5, ['12345']],
    [4, ['1234', 'More than 4 bytes were written: further output is not reported.']],
  ])('of %i bytes is said once, where more is written', (maxBytes, expected) => {
    const reports: unknown[] = []
    const progress = reportOutput((data) => void reports.push(data), maxBytes, new HeldTimers())
    for (const piece of ['123', '45']) progress.write('stdout', Buffer.from(piece))
    progress.end()
    progress.write('stdout', Buffer.from('6'))
    expect(reports.map((report) => Object.values(report as object).at(-1) as unknown)).toEqual(expected)
  })
})

describe('a text that is made visible', () => {
  it('holds no character that a terminal obeys, and keeps all others', () => {
    const unit = fc.oneof(
      fc.constantFrom('\u001b', '[', ']', '\u0007', '\\', '0', ';', 'm', '\r', '\n', 'P', '\u009b'),
      anyText({ maxLength: 2 }),
    )
    const holds = fc.property(
      fc.array(unit).map((units) => units.join('')),
      (given) => {
        const visible = toVisibleText(given)
        // oxlint-disable-next-line no-control-regex -- they are what is looked for
        expect(visible).not.toMatch(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/)
        expect(visible.isWellFormed()).toBe(true)
        expect(toVisibleText(visible)).toBe(visible)
      },
    )
    fc.assert(holds, { numRuns: tries(500) })
    expect(toVisibleText('ä😀"{}\t')).toBe('ä😀"{}\t')
  })
})
