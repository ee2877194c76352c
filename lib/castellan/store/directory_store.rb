# frozen_string_literal: true

require "digest"
require "fileutils"

module Castellan
  module Store
    # Keeps bytes in files of one directory, which the processes of one machine share; the oldest go when there are too many bytes.
    #
    #   store = DirectoryStore.new("tmp/castellan", max_bytesize: 64 * 1024 * 1024)
    #   store.write_multi({ "a" => "1" }, ttl: 60)
    #   store.read_multi(%w[a b]) # => { "a" => "1" }
    #
    # For profiles and what else is written rarely; each write looks at every file. A file is written beside its place and moved there.
    # The directory and its files are the user's alone (0700, 0600), and no symbolic link in it is followed.
    class DirectoryStore
      MAGIC = "CD\x03\x00".b.freeze
      HEAD = "a4Q>Q>" # the magic bytes, when it expires (nanoseconds since 1970, 0: never), and the size of the value
      HEAD_BYTESIZE = 20
      private_constant :MAGIC, :HEAD, :HEAD_BYTESIZE

      # @return [Integer] bytes
      attr_reader :max_bytesize

      # @param directory [#to_s] made when it is not there; for nothing else
      # @param max_bytesize [Integer] of all files; nothing larger than an eighth of it is kept, so that one entry cannot empty it
      # @raise [ConfigurationError]
      def initialize(directory, max_bytesize: 64 * 1024 * 1024)
        @max_bytesize = Integer(max_bytesize)
        raise ConfigurationError, "max_bytesize: must be above 0, got #{max_bytesize.inspect}" unless @max_bytesize.positive?

        @directory = File.expand_path(directory.to_s).freeze
        FileUtils.mkdir_p(@directory, mode: 0o700)
        return unless File.stat(@directory).world_writable?

        raise ConfigurationError, "the directory #{@directory} can be written by everybody; name one that is the application's own"
      rescue SystemCallError => error
        raise ConfigurationError, "the directory #{@directory} cannot be made: #{error.message}"
      end

      # @return [Hash{String => String}] what is there, binary
      def read_multi(keys)
        keys.to_h { |key| [key, entry(key)&.first] }.compact
      end

      # @param ttl [Numeric, nil] seconds
      # @param if_absent [Boolean] leaves alone what is there
      # @return [Array<String>] the keys that were written
      def write_multi(entries, ttl: nil, if_absent: false)
        Store.check_ttl(ttl)
        return [] if entries.empty?

        ends_ns = ttl ? now_ns + (ttl * 1_000_000_000).to_i : 0
        locked { entries.select { |key, bytes| !(if_absent && entry(key)) && write(key, bytes, ends_ns) }.keys }
      end

      def delete_multi(keys)
        locked { keys.each { |key| FileUtils.rm_f(path(key)) } } if keys.any?
        nil
      end

      # @return [Integer] the counter's new value; one that was not there, or was no number, is now 1. Its lifetime stays.
      def increment(key)
        locked do
          bytes, ends_ns = entry(key)
          (bytes.to_i + 1).tap { |value| write(key, value.to_s, ends_ns || 0) }
        end
      end

      # @return [Boolean] whether the value was `token` and is now gone
      def compare_and_delete(key, token)
        locked { entry(key)&.first == token.b && File.delete(path(key)) == 1 }
      end

      def supports?(feature)
        feature == :lease
      end

      # @return [Integer] bytes of all files, expired ones included
      def bytesize = files.sum { |file| File.size?(file).to_i }

      private

      # @return [Array(String, Integer), nil] bytes and when they expire
      def entry(key)
        text = File.open(path(key), File::RDONLY | File::NOFOLLOW, binmode: true, &:read)
        magic, ends_ns, bytesize = text.unpack(HEAD)
        return if magic != MAGIC || text.bytesize != HEAD_BYTESIZE + bytesize.to_i || (ends_ns.positive? && ends_ns <= now_ns)

        [text.byteslice(HEAD_BYTESIZE..), ends_ns]
      rescue Errno::ENOENT, Errno::ELOOP # a symbolic link
        nil
      rescue SystemCallError => error
        raise StoreError, error.message
      end

      # Within the lock.
      def write(key, bytes, ends_ns)
        text = [MAGIC, ends_ns, bytes.bytesize].pack(HEAD) << bytes.b
        FileUtils.rm_f(path(key))
        return false if text.bytesize > @max_bytesize / 8

        sweep(text.bytesize)
        beside = "#{path(key)}.part"
        File.open(beside, File::WRONLY | File::CREAT | File::EXCL, 0o600, binmode: true) { |file| file.write(text) }
        File.rename(beside, path(key))
        true
      end

      # Expired entries go first, then the oldest, until a quarter is free.
      def sweep(bytesize)
        FileUtils.rm_f(named("*.part")) # of a process that died
        kept = files.map { |file| [File.lstat(file), file] }
        used = kept.sum { |stat, _| stat.size } + bytesize
        return if used <= @max_bytesize

        kept.sort_by { |stat, file| [expired?(file) ? 0 : 1, stat.mtime, stat.size] }.each do |stat, file|
          break if used <= @max_bytesize * 3 / 4 && !expired?(file)

          File.delete(file)
          used -= stat.size
        end
      end

      def expired?(file)
        return true if File.symlink?(file)

        ends_ns = File.binread(file, HEAD_BYTESIZE).to_s.unpack(HEAD)[1].to_i
        ends_ns.positive? && ends_ns <= now_ns
      rescue Errno::ENOENT
        true
      end

      def files = named("*.entry")
      def named(pattern) = Dir.glob(pattern, base: @directory).map { |name| File.join(@directory, name) }
      def path(key) = File.join(@directory, "#{Digest::SHA256.hexdigest(key.b)[0, 40]}.entry")
      def now_ns = (Clock.now.to_r * 1_000_000_000).to_i

      # Each call opens the lock anew, so threads exclude each other, too.
      def locked
        File.open(File.join(@directory, "lock"), File::RDWR | File::CREAT | File::NOFOLLOW, 0o600) do |file|
          file.flock(File::LOCK_EX)
          yield
        end
      rescue SystemCallError => error
        raise StoreError, "#{@directory}: #{error.message}"
      end
    end
  end
end
