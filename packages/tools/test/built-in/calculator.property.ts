import { calculator } from '@tallystick/tools/calculator'
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { tries } from '../../../../scripts/testing/effort.ts'
import { endingOf } from '../one-call.ts'
import { anyText } from '../../../../scripts/testing/any-text.ts'

const tool = calculator()

/** Why an expression within the bounds has no value, or is beyond them. */
const beyondBounds =
  /the result needs more than 500 digits|nested deeper than 64 levels|at most 1000 characters/
const noValue = /division by zero/

/** What the tool says of an expression: the text of its answer, or of its refusal. */
async function said(expression: string): Promise<{ readonly answer?: string; readonly refusal?: string }> {
  const { outcome, text } = await endingOf(tool, { expression })
  return outcome === 'success' ? { answer: text } : { refusal: text }
}

/** A fraction of two whole numbers, the second above 0, that is never reduced: as plain as a definition. */
class Ratio {
  readonly n: bigint
  readonly d: bigint
  constructor(n: bigint, d = 1n) {
    ;[this.n, this.d] = d < 0n ? [-n, -d] : [n, d]
  }
  static of(decimal: string): Ratio {
    const [whole = '', places = ''] = decimal.split('.')
    return new Ratio(BigInt(whole.replace('-', '') + places), 10n ** BigInt(places.length)).signed(
      decimal.startsWith('-'),
    )
  }
  signed(isNegative: boolean): Ratio {
    return isNegative ? this.neg() : this
  }
  neg(): Ratio {
    return new Ratio(-this.n, this.d)
  }
  abs(): Ratio {
    return this.signed(this.n < 0n)
  }
  add(o: Ratio): Ratio {
    return new Ratio(this.n * o.d + o.n * this.d, this.d * o.d)
  }
  sub(o: Ratio): Ratio {
    return this.add(o.neg())
  }
  mul(o: Ratio): Ratio {
    return new Ratio(this.n * o.n, this.d * o.d)
  }
  div(o: Ratio): Ratio {
    return new Ratio(this.n * o.d, this.d * o.n)
  }
  mod(o: Ratio): Ratio {
    const times = this.div(o)
    return this.sub(new Ratio(times.n / times.d).mul(o))
  }
  floor(): Ratio {
    const down = this.n / this.d
    return new Ratio(down * this.d > this.n ? down - 1n : down)
  }
  ceil(): Ratio {
    return this.neg().floor().neg()
  }
  pow(times: number): Ratio {
    return new Ratio(this.n ** BigInt(times), this.d ** BigInt(times))
  }
  equals(o: Ratio): boolean {
    return this.n * o.d === o.n * this.d
  }
  lte(o: Ratio): boolean {
    return this.n * o.d <= o.n * this.d
  }
}

/** An expression with its value by definition; no value where it divides by zero. */
interface Sample {
  readonly text: string
  readonly value: Ratio | undefined
}

const literal: fc.Arbitrary<Sample> = fc
  .tuple(
    fc.nat(99_999),
    fc.option(fc.stringMatching(/^\d{1,6}$/)),
    fc.option(fc.integer({ min: -9, max: 9 })),
  )
  .map(([whole, places, exponent]) => {
    const mantissa = `${whole}${places === null ? '' : `.${places}`}`
    const value = Ratio.of(mantissa)
    if (exponent === null) return { text: mantissa, value }
    return { text: `${mantissa}e${exponent}`, value: value.mul(tenTo(exponent)) }
  })

function tenTo(exponent: number): Ratio {
  return exponent < 0 ? new Ratio(1n, 10n ** BigInt(-exponent)) : new Ratio(10n ** BigInt(exponent))
}

function combine(left: Sample, operator: string, right: Sample): Sample {
  const text = `(${left.text}) ${operator} (${right.text})`
  const [a, b] = [left.value, right.value]
  if (!a || !b || ('/%'.includes(operator) && b.n === 0n)) return { text, value: undefined }
  switch (operator) {
    case '+':
      return { text, value: a.add(b) }
    case '-':
      return { text, value: a.sub(b) }
    case '*':
      return { text, value: a.mul(b) }
    case '/':
      return { text, value: a.div(b) }
    default:
      return { text, value: a.mod(b) }
  }
}

const { sample } = fc.letrec<{ sample: Sample }>((tie) => ({
  sample: fc.oneof(
    { maxDepth: 5, withCrossShrink: true },
    literal,
    fc
      .tuple(tie('sample'), fc.constantFrom('+', '-', '*', '/', '%'), tie('sample'))
      .map((parts) => combine(...parts)),
    tie('sample').map(({ text, value }) => ({ text: `-(${text})`, value: value?.neg() })),
    tie('sample').map(({ text, value }) => ({ text: `abs(${text})`, value: value?.abs() })),
    tie('sample').map(({ text, value }) => ({ text: `floor(${text})`, value: value?.floor() })),
    tie('sample').map(({ text, value }) => ({ text: `ceil(${text})`, value: value?.ceil() })),
    fc.tuple(tie('sample'), fc.nat(4)).map(([{ text, value }, power]) => ({
      text: `(${text}) ^ ${power}`,
      value: value?.pow(power),
    })),
  ),
}))

/** The value of a printed number, and by how much it may be off: half a unit of its thirtieth digit. */
function readBack(printed: string): { readonly value: Ratio; readonly tolerance: Ratio } {
  const [, mantissa = '', exponent = '0'] = /^(-?[\d.]+)(?:e([+-]\d+))?/.exec(printed) ?? []
  const scale = tenTo(Number(exponent))
  const value = Ratio.of(mantissa).mul(scale)
  if (!printed.includes('rounded')) return { value, tolerance: new Ratio(0n) }
  const magnitude = Math.floor(Math.log10(Math.abs(Number(mantissa))))
  return { value, tolerance: scale.mul(tenTo(magnitude - 29)).div(new Ratio(2n)) }
}

describe('calculator', () => {
  it('agrees with fractions by their definition', async () => {
    let compared = 0
    const agrees = fc.asyncProperty(sample, async ({ text, value }) => {
      const { answer, refusal = '' } = await said(text)
      if (answer === undefined)
        return beyondBounds.test(refusal) || (value === undefined && noValue.test(refusal))
      if (value === undefined) return false
      compared++
      const read = readBack(answer)
      const [above, below] = /exactly (.+)\/(.+)\)/.exec(answer)?.slice(1).map(BigInt) ?? []
      return (
        read.value.sub(value).abs().lte(read.tolerance) &&
        (above === undefined || value.equals(new Ratio(above, below)))
      )
    })
    await fc.assert(agrees, { numRuns: tries(1_500) })
    expect(compared).toBeGreaterThan(tries(300))
  })

  it('reads by precedence as BigInt arithmetic does', async () => {
    const term = fc.tuple(fc.constantFrom('+', '-', '*'), fc.bigInt({ min: 0n, max: 999n }))
    const chain = fc.tuple(fc.bigInt({ min: 0n, max: 999n }), fc.array(term, { maxLength: 40 }))
    const agrees = fc.asyncProperty(chain, async ([first, terms]) => {
      // Products first, then the sum: what the precedence of the operators means.
      const sums: bigint[] = [first]
      let text = first.toString()
      for (const [operator, value] of terms) {
        text += `${operator}${value}`
        if (operator === '*') sums.push((sums.pop() ?? 0n) * value)
        else sums.push(operator === '-' ? -value : value)
      }
      expect(await said(text)).toEqual({ answer: sums.reduce((a, b) => a + b, 0n).toString() })
    })
    await fc.assert(agrees, { numRuns: tries(300) })
  })

  it('finds the root of every square, and the whole part of every other root', async () => {
    const isRoot = fc.asyncProperty(fc.bigInt({ min: 0n, max: 10n ** 58n }), async (value) => {
      expect(await said(`sqrt(${value * value})`)).toEqual({ answer: value.toString() })
      const { answer = '' } = await said(`floor(sqrt(${value}))`)
      const root = BigInt(answer.replace(' (rounded)', ''))
      expect(root ** 2n <= value && (root + 1n) ** 2n > value).toBe(true)
    })
    await fc.assert(isRoot, { numRuns: tries(300) })
  })

  it('prints every fraction within half a unit of its thirtieth digit', async () => {
    const whole = fc.oneof(fc.bigInt({ min: 1n, max: 1_000n }), fc.bigInt({ min: 1n, max: 10n ** 300n }))
    const isNear = fc.asyncProperty(whole, whole, fc.constantFrom('', '-'), async (above, below, sign) => {
      const { answer = '' } = await said(`${sign}${above} / ${below}`)
      expect(answer).toMatch(/^-?\d+(\.\d+)?(e[+-]\d+)?( \(rounded(; exactly -?\d+\/\d+)?\))?$/)
      const read = readBack(answer)
      const value = new Ratio(sign === '-' ? -above : above, below)
      expect(read.value.sub(value).abs().lte(read.tolerance)).toBe(true)
    })
    await fc.assert(isNear, { numRuns: tries(500) })
  })

  it('answers any text, or names a place in it', async () => {
    const words = [
      '1',
      '2.5',
      '1e3',
      '+',
      '-',
      '*',
      '/',
      '%',
      '^',
      '(',
      ')',
      ',',
      ' ',
      'max',
      'sqrt',
      'x',
      '_',
      '∑',
    ]
    const text = fc.oneof(
      fc.array(fc.constantFrom(...words), { minLength: 1, maxLength: 30 }).map((chosen) => chosen.join('')),
      anyText({ minLength: 1 }),
    )
    const isHandled = fc.asyncProperty(text, async (expression) => {
      const { answer = '0', refusal = 'At character 1: none.' } = await said(expression)
      expect(answer).toMatch(/^-?\d/)
      expect(refusal).toMatch(/^At character \d+: .+\.$/su)
    })
    await fc.assert(isHandled, { numRuns: tries(2_000) })
  })
})
