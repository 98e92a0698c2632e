import { visibleText } from '../../terminal/visible-text.ts'

const tabColumns = 8

/**
 * Returns a text as the rows that it takes on a terminal: visible, and broken at the last column. A character outside
 * ASCII counts as two columns, which none exceeds, so that no row is broken by the terminal itself.
 */
export function wrappedLines(text: string, columns: number): readonly string[] {
  return visibleText(text)
    .split('\n')
    .flatMap((line) => rowsOf(line, Math.max(tabColumns, columns)))
}

function rowsOf(line: string, columns: number): readonly string[] {
  const rows: string[] = []
  let [row, width] = ['', 0]
  for (const character of line) {
    const wide = character === '\t' ? tabColumns : character < '\u0080' ? 1 : 2
    if (width + wide > columns) {
      rows.push(row)
      ;[row, width] = ['', 0]
    }
    row += character
    width += wide
  }
  return [...rows, row]
}
