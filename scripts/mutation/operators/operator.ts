import type { Node } from 'oxc-parser'

/** One edit of a source text: `text` replaces what is from `start` to `end`, in UTF-16 units. */
export interface Edit {
  readonly start: number
  readonly end: number
  readonly text: string
}

/** A node of a syntax tree, with what is around it. */
export interface Place {
  readonly node: Node
  /** The nodes that hold it, nearest first. */
  readonly ancestors: readonly Node[]
  /** The text of the whole file. */
  readonly source: string
}

/** A kind of fault that a person could make. */
export interface Operator {
  readonly name: string
  /** Returns the faults of this kind that this node may have; an empty list for most nodes. */
  readonly editsOf: (place: Place) => readonly Edit[]
}

/** The text of a node. */
export function textOf({ source }: Place, { start, end }: Node): string {
  return source.slice(start, end)
}

/** Replaces a whole node. */
export function replaced({ start, end }: Node, text: string): Edit {
  return { start, end, text }
}

/** Replaces the operator between two operands, which may have brackets and comments around it. */
export function between(
  place: Place,
  operands: readonly [Node, Node],
  signs: readonly [string, string],
): Edit {
  const [left, right] = operands
  const [sign, text] = signs
  const start = place.source.lastIndexOf(sign, right.start - 1)
  if (start < left.end) throw new Error(`No ${sign} between the operands at ${left.end}.`)
  return { start, end: start + sign.length, text }
}
