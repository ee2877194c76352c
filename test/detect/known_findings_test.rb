# frozen_string_literal: true

require "test_helper"
require "castellan/detect"
require "tempfile"

class DetectKnownFindingsTest < Minitest::Test
  Known = Castellan::Detect::KnownFindings

  def test_a_finding_is_known_by_the_file_of_its_fix_site_and_its_association_whatever_the_line
    known = Known.new([{ "file" => "app/users.rb", "association" => "User#posts", "reason" => "few" }])
    assert known.known?(finding(parent_location: "app/users.rb:9", location: "app/view.rb:1", association: "User#posts"))
    assert known.known?(finding(location: "app/users.rb:100", association: "User#posts"))
    refute known.known?(finding(parent_location: "app/other.rb:9", location: "app/users.rb:9", association: "User#posts"))
    refute known.known?(finding(location: "app/users.rb:9", association: "User#roles"))
    refute known.known?(finding(association: "User#posts"))
  end

  def test_without_an_association_the_fingerprint_counts
    known = Known.new([{ "file" => "app/users.rb", "fingerprint" => "select ?", "reason" => "few" }])
    assert known.known?(finding(location: "app/users.rb:9", fingerprint: "select ?"))
    refute known.known?(finding(location: "app/users.rb:9", fingerprint: "select a"))
  end

  def test_a_written_file_is_valid_once_it_has_reasons
    findings = [finding(location: "app/users.rb:9", association: "User#posts"), finding(location: "app/a: b.rb:9", fingerprint: "select ?")]
    text = Known.entries(findings)
    assert_includes assert_raises(Castellan::ConfigurationError) { read(text) }.message, "entry 1: give the reason"
    assert_empty read(text.gsub("reason: ''", "reason: few")).new_among(findings)
  end

  def test_an_invalid_file_raises_with_its_name_and_the_fix
    assert_includes assert_raises(Castellan::ConfigurationError) { Known.of("nowhere.yml") }.message, "nowhere.yml: no such file"
    { "a: b" => "write a list", "- [" => "in line", "- file: a\n  line: 3\n" => "line is not known", "- 3" => "entry 1: write a list",
      "- association: User#posts" => "give the file" }.each do |text, message|
      assert_includes assert_raises(Castellan::ConfigurationError) { read(text) }.message, message
    end
    assert_empty read("").new_among([])
  end

  private

  def read(text)
    Tempfile.create("known") do |file|
      file.write(text)
      file.flush
      return Known.of(file.path)
    end
  end

  def finding(**more) = Castellan::Finding.new(kind: :n_plus_one, count: 5, **more)
end
