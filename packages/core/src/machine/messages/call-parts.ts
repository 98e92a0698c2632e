import { withMore } from './batch-arrays.ts'

/** So many parts are looked through one by one; among more, the place of a part is looked up. */
const FEW_PARTS = 16

/** The place of each part, by the parts of the calls of a reply. It grows with them, so only the newest array keeps it. */
const knownPlaces = new WeakMap<readonly number[], Map<number, number>>()

/** The place of a part among those of the calls of a reply; -1 where it is not there. */
export function placeOfPart(callParts: readonly number[], part: number): number {
  // The request of a call nearly always follows its input.
  if (callParts.at(-1) === part) return callParts.length - 1
  return callParts.length <= FEW_PARTS ? callParts.indexOf(part) : (placesOf(callParts).get(part) ?? -1)
}

/** The parts with one more, where it is new. */
export function withPart(callParts: readonly number[], part: number): readonly number[] {
  if (placeOfPart(callParts, part) !== -1) return callParts
  const places = knownPlaces.get(callParts)
  const more = withMore(callParts, part)
  if (places) {
    knownPlaces.delete(callParts)
    knownPlaces.set(more, places.set(part, more.length - 1))
  }
  return more
}

function placesOf(callParts: readonly number[]): ReadonlyMap<number, number> {
  const known = knownPlaces.get(callParts)
  if (known) return known
  const places = new Map(callParts.map((part, place) => [part, place]))
  knownPlaces.set(callParts, places)
  return places
}
