import { padded, textWidth } from '../../terminal/text-width.ts'
import { visibleText } from '../../terminal/visible-text.ts'

/**
 * Rows in columns of equal width, two spaces apart. The last column is as wide as it likes. A cell is one line, so that
 * no text can look like another row.
 */
export function table(given: readonly (readonly string[])[]): string {
  const rows = given.map((row) => row.map((cell) => visibleText(cell).replaceAll(/[\n\t]+/g, ' ')))
  const widths: number[] = []
  for (const row of rows) {
    row.forEach((cell, column) => (widths[column] = Math.max(widths[column] ?? 0, textWidth(cell))))
  }
  const line = (row: readonly string[]): string =>
    row
      .map((cell, column) => (column === row.length - 1 ? cell : padded(cell, widths[column] ?? 0)))
      .join('  ')
  return rows.map((row) => `${line(row)}\n`).join('')
}
