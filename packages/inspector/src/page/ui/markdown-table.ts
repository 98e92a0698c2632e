/** Rows of values as a table of Markdown. A line end or a bar within a value ends no cell. */
export function toMarkdownTable(
  columns: readonly string[],
  rows: readonly (readonly (string | number | undefined)[])[],
): string {
  const line = (cells: readonly (string | number | undefined)[]): string =>
    `| ${cells
      .map((cell) =>
        String(cell ?? '')
          .replaceAll('|', String.raw`\|`)
          .replaceAll(/\s+/g, ' '),
      )
      .join(' | ')} |`
  return [line(columns), line(columns.map(() => '---')), ...rows.map(line)].join('\n')
}
