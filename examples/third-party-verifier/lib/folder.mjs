// Reading a run folder that somebody else made: plain files alone, no link on the way, nothing waited for.

import fs from "node:fs";
import path from "node:path";
import { createHash } from "node:crypto";
import { isPath } from "./types.mjs";

const CHUNK = 1 << 20;
// To hash a hole takes as long as bytes do: a reader need not, of a large file with next to nothing on the disk.
const MAX_HOLLOW = 64 * (1 << 20);
const HOLLOW = 1000;
const BLOCK = 512;

/** Why a file cannot be read, as half a sentence. */
export class FolderFault extends Error {}

export class Folder {
  constructor(root) {
    this.root = root;
    this.plain = new Map();
  }

  /** Whether every folder on the way to `place` is one, and no link. */
  #way(place) {
    const parts = place.split("/").slice(0, -1);
    let soFar = "";
    for (const part of parts) {
      soFar = soFar === "" ? part : `${soFar}/${part}`;
      if (!this.plain.has(soFar)) this.plain.set(soFar, this.kind(soFar) === "folder");
      if (!this.plain.get(soFar)) return false;
    }
    return true;
  }

  /** "file", "folder", "link", "other" or "nothing"; of the last part alone. */
  kind(place) {
    let stat;
    try {
      stat = fs.lstatSync(path.join(this.root, place));
    } catch {
      return "nothing";
    }
    if (stat.isFile()) return "file";
    if (stat.isDirectory()) return "folder";
    return stat.isSymbolicLink() ? "link" : "other";
  }

  /** What the file system says of a place, or null where nothing stands there. */
  stat(place) {
    return fs.lstatSync(path.join(this.root, place), { throwIfNoEntry: false }) ?? null;
  }

  /** The number of bytes of a plain file; throws FolderFault. */
  size(place) {
    if (!isPath(place)) throw new FolderFault("is no plain relative path");
    if (!this.#way(place)) throw new FolderFault("stands below what is no folder");
    const kind = this.kind(place);
    if (kind === "nothing") throw new FolderFault("is not there");
    if (kind !== "file") throw new FolderFault("is no plain file");
    return fs.lstatSync(path.join(this.root, place)).size;
  }

  /** Whether a plain file is large, and nearly all hole. */
  #isHollow(place) {
    const { size, blocks } = fs.lstatSync(path.join(this.root, place));
    return size > MAX_HOLLOW && blocks * BLOCK * HOLLOW < size;
  }

  /** A file's descriptor, which the caller closes; throws FolderFault. */
  open(place) {
    this.size(place);
    try {
      return fs.openSync(path.join(this.root, place), fs.constants.O_RDONLY | fs.constants.O_NOFOLLOW);
    } catch (error) {
      throw new FolderFault(`cannot be read: ${error.code}`);
    }
  }

  /** A small file's bytes; throws FolderFault. */
  read(place, most = 1 << 28) {
    const size = this.size(place);
    if (size > most) throw new FolderFault(`is ${size} bytes long, more than ${most}`);
    const fd = this.open(place);
    try {
      return fs.readFileSync(fd);
    } catch (error) {
      throw new FolderFault(`cannot be read: ${error.code}`);
    } finally {
      fs.closeSync(fd);
    }
  }

  /** Bytes from a place in a file, as many as there are of those asked for; throws FolderFault. */
  slice(fd, offset, length) {
    const bytes = Buffer.alloc(length);
    let got = 0;
    while (got < length) {
      let count;
      try {
        count = fs.readSync(fd, bytes, got, length - got, offset + got);
      } catch (error) {
        throw new FolderFault(`cannot be read: ${error.code}`);
      }
      if (count === 0) break;
      got += count;
    }
    return bytes.subarray(0, got);
  }

  /** null where a plain file stands with this size and digest, else why not. */
  differs(place, size, sha256) {
    let fd;
    try {
      const found = this.size(place);
      if (found !== size) return `is ${found} bytes long, not ${size}`;
      if (this.#isHollow(place)) return "is nearly all hole, and is not read";
      fd = this.open(place);
      const hash = createHash("sha256");
      for (let offset = 0; ; ) {
        const bytes = this.slice(fd, offset, CHUNK);
        if (bytes.length === 0) break;
        hash.update(bytes);
        offset += bytes.length;
      }
      return hash.digest("hex") === sha256 ? null : "has another digest";
    } catch (error) {
      if (error instanceof FolderFault) return error.message;
      throw error;
    } finally {
      if (fd !== undefined) fs.closeSync(fd);
    }
  }

  /** [name, kind] of what stands in a folder, sorted; none where it is no folder that can be read. */
  list(place) {
    if (place !== "" && !(this.#way(place) && this.kind(place) === "folder")) return [];
    let names;
    try {
      names = fs.readdirSync(path.join(this.root, place));
    } catch {
      return [];
    }
    return names.sort().map((name) => [name, this.kind(place === "" ? name : `${place}/${name}`)]);
  }
}
