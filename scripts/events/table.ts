/** A word as code. */
export function code(word: string): string {
  return `\`${word}\``
}

/** A Markdown table as the formatter leaves it: cells padded to the width of their column. */
export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const widths = head.map((title, column) =>
    Math.max(3, title.length, ...rows.map((row) => (row[column] ?? '').length)),
  )
  const line = (cells: readonly string[]): string =>
    `| ${widths.map((width, column) => (cells[column] ?? '').padEnd(width)).join(' | ')} |`
  const rule = widths.map((width) => '-'.repeat(width))
  return [line(head), line(rule), ...rows.map(line)].join('\n')
}
