import { FileSource } from '../data/file-source.ts'
import { go } from './route.ts'
import { listTrouble } from './runs.ts'
import { source } from './source.ts'

/** Shows an export that is dropped on the page, in the place of what was shown. Returns how to stop. */
export function takeDroppedExports(): () => void {
  const allow = (event: DragEvent): void => event.preventDefault()
  const take = (event: DragEvent): void => {
    // Else the browser would leave the page for the file.
    event.preventDefault()
    const file = event.dataTransfer?.files[0]
    if (file) void openExport(file).catch((error: Error) => (listTrouble.value = error.message))
  }
  addEventListener('dragover', allow)
  addEventListener('drop', take)
  return () => {
    removeEventListener('dragover', allow)
    removeEventListener('drop', take)
  }
}

async function openExport(file: File): Promise<void> {
  const opened = new FileSource(file.name, (await file.text()).split('\n'))
  go({ run: undefined, at: undefined, call: undefined, with: undefined })
  source.value = opened
}
