import { setImmediate } from 'node:timers/promises'

/** The first place of a text, from a place on, where another one begins; -1 where it does not. */
type Seek = (text: string, from: number) => number

/**
 * Seeks a text that is not empty. It looks at each character a bounded number of times, however the two texts repeat
 * themselves (the algorithm of Knuth, Morris and Pratt).
 */
function seekerOf(sought: string): Seek {
  const borders = bordersOf(sought)
  return (text, from) => {
    let matched = 0
    for (let place = from; place < text.length; place++) {
      const unit = text.charCodeAt(place)
      while (matched > 0 && unit !== sought.charCodeAt(matched)) matched = borders[matched - 1] ?? 0
      if (unit === sought.charCodeAt(matched)) matched++
      if (matched === sought.length) return place - matched + 1
    }
    return -1
  }
}

/** For each beginning of a text the length of its longest proper beginning that is also its end. */
function bordersOf(text: string): Uint32Array {
  const borders = new Uint32Array(text.length)
  for (let place = 1, matched = 0; place < text.length; place++) {
    while (matched > 0 && text.charCodeAt(place) !== text.charCodeAt(matched))
      matched = borders[matched - 1] ?? 0
    if (text.charCodeAt(place) === text.charCodeAt(matched)) matched++
    borders[place] = matched
  }
  return borders
}

/** Characters that are looked at before the event loop has its turn. */
const sliceLength = 512 * 1024

/** The places where a text begins in a large one. */
export interface FoundPlaces {
  /** Those that do not overlap, from the first one on. */
  readonly places: readonly number[]
  /** How many others begin within them: `aa` begins twice in `aaa`. */
  readonly overlapping: number
}

/** Finds the places where a text that is not empty begins in another one, without holding the event loop. */
export async function findPlaces(sought: string, text: string, signal: AbortSignal): Promise<FoundPlaces> {
  const borders = bordersOf(sought)
  const places: number[] = []
  let [overlapping, end, matched] = [0, 0, 0]
  for (let from = 0; from < text.length; from += sliceLength) {
    const to = Math.min(text.length, from + sliceLength)
    for (let place = from; place < to; place++) {
      const unit = text.charCodeAt(place)
      while (matched > 0 && unit !== sought.charCodeAt(matched)) matched = borders[matched - 1] ?? 0
      if (unit === sought.charCodeAt(matched)) matched++
      if (matched < sought.length) continue
      const start = place - matched + 1
      matched = borders[matched - 1] ?? 0
      if (start < end) overlapping++
      else {
        places.push(start)
        end = place + 1
      }
    }
    await setImmediate()
    signal.throwIfAborted()
  }
  return { places, overlapping }
}

/** The places where a text begins in another one, without overlaps. */
export function placesOf(sought: string, text: string): readonly number[] {
  if (sought === '') return []
  const seek = seekerOf(sought)
  const places: number[] = []
  for (let place = seek(text, 0); place !== -1; place = seek(text, place + sought.length)) places.push(place)
  return places
}

/** The place where a text that is not empty first begins in another one; -1 where it does not. */
export function placeOf(sought: string, text: string): number {
  return seekerOf(sought)(text, 0)
}

/** The numbers, from 1, of the first lines that hold a text; the text is not empty and holds no line break. */
export function linesWith(sought: string, text: string, count: number): readonly number[] {
  const seek = seekerOf(sought)
  const numbers: number[] = []
  let [line, lineStart] = [1, 0]
  for (let from = 0; numbers.length < count;) {
    const place = seek(text, from)
    if (place === -1) break
    for (
      let end = text.indexOf('\n', lineStart);
      end !== -1 && end < place;
      end = text.indexOf('\n', lineStart)
    ) {
      ;[line, lineStart] = [line + 1, end + 1]
    }
    numbers.push(line)
    const end = text.indexOf('\n', place)
    if (end === -1) break
    from = end + 1
  }
  return numbers
}

/** The numbers, from 1, of the lines in which these places of a text are; the places rise. */
export function lineNumbersOf(text: string, places: readonly number[]): readonly number[] {
  let [line, next] = [1, text.indexOf('\n')]
  return places.map((place) => {
    while (next !== -1 && next < place) [line, next] = [line + 1, text.indexOf('\n', next + 1)]
    return line
  })
}
