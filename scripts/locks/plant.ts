/** A pair of twin files: one that a lock lets through, and one that it must refuse. */
export interface Plant {
  /** What the lock keeps, as a claim. */
  readonly claim: string
  /** Where the file is planted, from the root of the repository. */
  readonly path: string
  readonly allowed: string
  readonly refused: string
  /** What the tool calls the refusal; several names, parted by spaces, where any of them will do. */
  readonly code: string
}

/** What a tool said about a file. */
export interface Refusal {
  readonly path: string
  readonly code: string
}

/** Writes both twins of a plant around what tells them apart. */
export function around(write: (part: string) => string): (plant: Plant) => Plant {
  return (plant) => ({ ...plant, allowed: write(plant.allowed), refused: write(plant.refused) })
}

/** The text of a file that only imports a module, and would hand on its `x`. */
export const importing: (plant: Plant) => Plant = around((module) => `export { x } from '${module}'\n`)

/** The text of a file that only holds an expression. */
export const exporting: (plant: Plant) => Plant = around(
  (value) => `export const found: unknown = ${value}\n`,
)
