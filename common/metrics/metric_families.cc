#include "common/metrics/metric_families.h"

#include <algorithm>
#include <iterator>

#include "prometheus/text_serializer.h"

namespace lockstep {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;

std::vector<ClientMetric::Label> ToLabels(const MetricLabels& labels) {
  std::vector<ClientMetric::Label> converted;
  for (const auto& [name, value] : labels) converted.push_back({name, value});
  return converted;
}

}  // namespace

MetricFamily& MetricFamilies::Family(const std::string& name,
                                     const std::string& help, MetricType type) {
  // Samples of one name mostly follow one another.
  const auto found =
      std::find_if(families_.rbegin(), families_.rend(),
                   [&](const MetricFamily& one) { return one.name == name; });
  if (found != families_.rend()) return *found;
  return families_.emplace_back(MetricFamily{name, help, type, {}});
}

void MetricFamilies::Gauge(const std::string& name, const std::string& help,
                           double value, const MetricLabels& labels) {
  ClientMetric sample;
  sample.label = ToLabels(labels);
  sample.gauge.value = value;
  Family(name, help, MetricType::Gauge).metric.push_back(std::move(sample));
}

void MetricFamilies::Counter(const std::string& name, const std::string& help,
                             double value, const MetricLabels& labels) {
  ClientMetric sample;
  sample.label = ToLabels(labels);
  sample.counter.value = value;
  Family(name, help, MetricType::Counter).metric.push_back(std::move(sample));
}

void MetricFamilies::Add(MetricFamilies more) {
  Add(std::move(more.families_));
}

void MetricFamilies::Add(std::vector<MetricFamily> more) {
  for (MetricFamily& family : more) {
    std::vector<ClientMetric>& into =
        Family(family.name, family.help, family.type).metric;
    std::move(family.metric.begin(), family.metric.end(),
              std::back_inserter(into));
  }
}

void MetricFamilies::AddLabels(const MetricLabels& labels) {
  for (MetricFamily& family : families_) {
    for (ClientMetric& sample : family.metric) {
      std::vector<ClientMetric::Label> all;
      for (ClientMetric::Label& label : ToLabels(labels)) {
        const bool has = std::any_of(
            sample.label.begin(), sample.label.end(),
            [&](const auto& own) { return own.name == label.name; });
        if (!has && !label.value.empty()) all.push_back(std::move(label));
      }
      std::move(sample.label.begin(), sample.label.end(),
                std::back_inserter(all));
      sample.label = std::move(all);
    }
  }
}

std::string MetricFamilies::ToText() const {
  return prometheus::TextSerializer().Serialize(families_);
}

}  // namespace lockstep
