import { type AST, RegExpParser } from '@eslint-community/regexpp'

/** Called with the place after what was matched; answers whether the rest matches from there. */
type Rest = (place: number) => boolean

/**
 * Counts the steps that an engine which backtracks, as every JavaScript engine does, takes to find all matches of a pattern
 * in a text: one for each look at a character, up to `maxSteps`. Unlike time, the count is the same on every machine.
 */
export function stepCounter(source: string, flags: string): (text: string, maxSteps: number) => number {
  const matcher = new BacktrackingMatcher(source, flags)
  return (text, maxSteps) => matcher.stepsOn(text, maxSteps)
}

class TooManySteps extends Error {}

class BacktrackingMatcher {
  #steps = 0
  #maxSteps = 0
  #text = ''
  readonly #alternatives: readonly AST.Alternative[]
  readonly #flags: string
  readonly #global: boolean
  readonly #sticky: boolean
  readonly #matched = new Map<AST.Node, Map<string, boolean>>()

  constructor(source: string, flags: string) {
    const unicode = flags.includes('u')
    const parsed = new RegExpParser().parsePattern(source, 0, source.length, { unicode })
    this.#alternatives = parsed.alternatives
    this.#flags = flags.replaceAll(/[dgy]/g, '')
    this.#global = flags.includes('g')
    this.#sticky = flags.includes('y')
  }

  stepsOn(text: string, maxSteps: number): number {
    this.#text = text
    this.#maxSteps = maxSteps
    this.#steps = 0
    try {
      this.#findAll()
    } catch (error) {
      if (!(error instanceof TooManySteps)) throw error
    }
    return this.#steps
  }

  /** Looks from each place on, as `exec` does; of a global pattern, after each match again. */
  #findAll(): void {
    let from = 0
    while (from <= this.#text.length) {
      let end = -1
      const found = this.#any(this.#alternatives, from, (place) => {
        end = place
        return true
      })
      if ((found && !this.#global) || (!found && this.#sticky)) return
      from = found && end > from ? end : from + 1
    }
  }

  #step(): void {
    this.#steps++
    if (this.#steps >= this.#maxSteps) throw new TooManySteps()
  }

  #any(alternatives: readonly AST.Alternative[], place: number, rest: Rest): boolean {
    return alternatives.some(({ elements }) => this.#all(elements, 0, place, rest))
  }

  #all(elements: readonly AST.Element[], index: number, place: number, rest: Rest): boolean {
    const element = elements[index]
    if (element === undefined) return rest(place)
    return this.#one(element, place, (next) => this.#all(elements, index + 1, next, rest))
  }

  #one(element: AST.Element, place: number, rest: Rest): boolean {
    this.#step()
    switch (element.type) {
      case 'Group':
      case 'CapturingGroup':
        return this.#any(element.alternatives, place, rest)
      case 'Quantifier':
        return this.#repeated(element, 0, place, rest)
      case 'Assertion':
        return this.#holds(element, place) && rest(place)
      case 'Character':
      case 'CharacterSet':
      case 'CharacterClass':
        return this.#matchesOne(element, place) && rest(place + 1)
      case 'Backreference':
      case 'ExpressionCharacterClass':
        throw new Error(`${element.raw} is not counted here: write the pattern without it.`)
    }
  }

  #repeated(quantifier: AST.Quantifier, times: number, place: number, rest: Rest): boolean {
    const { element, min, max, greedy } = quantifier
    const again = (): boolean =>
      times < max &&
      this.#one(element, place, (next) =>
        // An empty repetition ends the repeating, as the language says.
        next === place && times >= min ? false : this.#repeated(quantifier, times + 1, next, rest),
      )
    const enough = (): boolean => times >= min && rest(place)
    return greedy ? again() || enough() : enough() || again()
  }

  #holds(assertion: AST.Assertion, place: number): boolean {
    switch (assertion.kind) {
      case 'start':
        return place === 0 || (this.#flags.includes('m') && this.#text[place - 1] === '\n')
      case 'end':
        return place === this.#text.length || (this.#flags.includes('m') && this.#text[place] === '\n')
      case 'word':
        return (this.#isWord(place - 1) !== this.#isWord(place)) !== assertion.negate
      case 'lookahead':
        return this.#any(assertion.alternatives, place, () => true) !== assertion.negate
      case 'lookbehind':
        return this.#standsBefore(assertion, place) !== assertion.negate
    }
  }

  #standsBefore({ alternatives }: AST.LookbehindAssertion, end: number): boolean {
    const first = Math.max(0, end - widest(alternatives))
    for (let start = end; start >= first; start--) {
      if (this.#any(alternatives, start, (place) => place === end)) return true
    }
    return false
  }

  #isWord(place: number): boolean {
    return /^\w$/.test(this.#text[place] ?? '')
  }

  #matchesOne(node: AST.Character | AST.CharacterSet | AST.CharacterClass, place: number): boolean {
    const character = this.#text[place]
    if (character === undefined) return false
    const known = this.#matched.get(node) ?? new Map<string, boolean>()
    this.#matched.set(node, known)
    const matches =
      known.get(character) ?? new RegExp(`^(?:${node.raw})$`, this.#flags.replaceAll('m', '')).test(character)
    known.set(character, matches)
    return matches
  }
}

/** Characters that alternatives match at most. */
function widest(alternatives: readonly AST.Alternative[]): number {
  return Math.max(...alternatives.map(({ elements }) => elements.reduce((sum, each) => sum + width(each), 0)))
}

function width(element: AST.Element): number {
  if (element.type === 'Quantifier') return element.max * width(element.element)
  if (element.type === 'Group' || element.type === 'CapturingGroup') return widest(element.alternatives)
  return element.type === 'Assertion' ? 0 : 1
}
