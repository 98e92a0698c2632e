// Swaps a folder for a link to another place and back, until its channel closes or it is killed.
import { mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import process from 'node:process'

const [root, outside] = process.argv.slice(2)
const [name, folder, link] = [`${root}/swapped`, `${root}/folder`, `${root}/link`]

function begin() {
  for (const path of [name, folder, link]) rmSync(path, { recursive: true, force: true })
  mkdirSync(`${name}/inner`, { recursive: true })
  for (const path of [`${name}/a.txt`, `${name}/inner/a.txt`]) writeFileSync(path, 'inside')
  symlinkSync(outside, link)
}

function swap() {
  try {
    // So many at a time, so that the end of the channel is noticed.
    for (let times = 0; times < 200; times++) {
      renameSync(name, folder)
      renameSync(link, name)
      renameSync(name, link)
      renameSync(folder, name)
    }
  } catch {
    // A call moved or made one of them meanwhile.
    try {
      begin()
    } catch {
      // It did so again.
    }
  }
  setImmediate(swap)
}

process.on('disconnect', () => process.exit())
begin()
process.send('started', swap)
