// Everything that is compiled for one instruction set, exported as kg_<name>_<instruction set>.
#include "attention.h"
#include "flow.h"
#include "oscillators.h"
#include "sparse.h"

#define KG_JOIN(name, isa) kg_##name##_##isa
#define KG_NAME(name, isa) KG_JOIN(name, isa)
#define KG_KERNEL(name, Job, Float, Double) \
  KG_EXPORT void KG_NAME(name, KG_ISA)(const Job* job) { job->is_double ? Double : Float; }
using namespace KG_ISA;

KG_EXPORT int64_t KG_NAME(flow_scratch, KG_ISA)(const FlowJob* job) {
  return job->is_double ? Flow<double>(*job).scratch() : Flow<float>(*job).scratch();
}
KG_KERNEL(flow_forward, FlowJob, Flow<float>(*job).forward(), Flow<double>(*job).forward())
KG_KERNEL(flow_backward, FlowJob, Flow<float>(*job).backward(), Flow<double>(*job).backward())
KG_KERNEL(attention_forward, AttentionJob, Attention<float>(*job).forward(), Attention<double>(*job).forward())
KG_KERNEL(attention_backward, AttentionJob, Attention<float>(*job).backward(), Attention<double>(*job).backward())
KG_KERNEL(sparse_product, SparseJob, sparse_product<float>(*job), sparse_product<double>(*job))
KG_KERNEL(sampled_product, SparseJob, sampled_product<float>(*job), sampled_product<double>(*job))
KG_KERNEL(oscillators_advance, OscillatorsJob, Oscillators<float>(*job).advance(), Oscillators<double>(*job).advance())
KG_KERNEL(oscillators_begin, OscillatorsJob, Oscillators<float>(*job).begin(), Oscillators<double>(*job).begin())
KG_KERNEL(oscillators_wrap, OscillatorsJob, Oscillators<float>(*job).wrap(), Oscillators<double>(*job).wrap())
