/** A word as code. */
export function code(word: string): string {
  return `\`${word}\``
}

/** A row for each word: itself and its meaning. */
export function words(
  list: readonly string[],
  meanings: { readonly [word: string]: string },
): readonly (readonly string[])[] {
  return list.map((word) => [code(word), meanings[word] ?? missing(word)])
}

function missing(word: string): never {
  throw new Error(`${word} has no line of meaning; give it one in scripts/endings/meanings.ts.`)
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
