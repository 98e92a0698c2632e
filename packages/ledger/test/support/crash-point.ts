import type { Course } from './crash-course.ts'

/** One way of cutting a user's runs off: where the first process dies, or stands still, and where a second one does. */
export interface Point {
  readonly store: 'sqlite' | 'postgres'
  readonly kind: 'kill' | 'stop'
  readonly scenario: string
  /** The step that the process begins with; those before it, another process saw to. */
  readonly fromStep: number
  /** The boundary, from 1, at which it meets its fate. */
  readonly at: number
  /** The boundary at which a second process dies that took over from the first. */
  readonly thenAt?: number
}

/** A point as a word that can be given to a command. */
export function pointText({ store, kind, scenario, fromStep, at, thenAt }: Point): string {
  return [store, kind, scenario, fromStep, at, ...(thenAt === undefined ? [] : [thenAt])].join(':')
}

/** The point that a word names. Throws where it names none. */
export function parsePoint(text: string): Point {
  const [, store, kind, scenario = '', fromStep, at, thenAt] =
    /^(sqlite|postgres):(kill|stop):([a-z ]+):(\d+):(\d+)(?::(\d+))?$/.exec(text) ?? []
  if (store === undefined) throw new Error(`${text} names no point. One is called sqlite:kill:writes:0:17.`)
  return {
    store: store as Point['store'],
    kind: kind as Point['kind'],
    scenario,
    fromStep: Number(fromStep),
    at: Number(at),
    ...(thenAt !== undefined && { thenAt: Number(thenAt) }),
  }
}

/** How many of the processes that took over are killed too. */
const secondDeaths = 1 / 3

/**
 * Chooses points among all that there are, the same ones for the same randomness: each course has its share, and no
 * point comes twice before all of a course have come.
 */
export function choosePoints(
  given: readonly Course[],
  { store, kind, count }: Pick<Point, 'store' | 'kind'> & { readonly count: number },
  random: () => number,
): readonly Point[] {
  const courses = given.filter(({ boundaries }) => boundaries > 0)
  const decks = courses.map(({ boundaries }) => {
    const places = Array.from({ length: boundaries }, (_, index) => index + 1)
    return { deck: shuffled(places, random), dealt: 0 }
  })
  return Array.from({ length: courses.length === 0 ? 0 : count }, (_, index): Point => {
    const { scenario, fromStep, boundaries } = courses[index % courses.length] as Course
    const hand = decks[index % decks.length] as (typeof decks)[number]
    const at = hand.deck[hand.dealt++ % hand.deck.length] as number
    const diesAgain = kind === 'kill' && random() < secondDeaths
    const thenAt = 1 + Math.floor(random() * boundaries)
    return { store, kind, scenario, fromStep, at, ...(diesAgain && { thenAt }) }
  })
}

function shuffled<T>(items: readonly T[], random: () => number): readonly T[] {
  const deck = [...items]
  for (let left = deck.length; left > 1; left--) {
    const other = Math.floor(random() * left)
    ;[deck[left - 1], deck[other]] = [deck[other] as T, deck[left - 1] as T]
  }
  return deck
}
